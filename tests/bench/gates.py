#!/usr/bin/env python3
"""The gates of streaming: rnbd within a memory limit, beside llama.cpp within the same one.

    gates.py --build build [--gate NAME]... [--rival path/to/llama-completion] [--out gates.json] [--models DIR]
             [--rounds 3] [--threads 2] [--base path/to/another/rnbd]

Runs alternate, and the page cache of the model is dropped before each.  Every figure is a row {gate, model, budget, figure,
unit, must, holds} of the file named by --out; holds is null for a figure that is only told.  A gate that cannot be tried
here (no cgroup to write, no rival named) is skipped with a word.  Exit status 1 when a row does not hold.

Gates: streaming-moe streaming-prefill streaming-dense fits peak live-shrink one-answer faults.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import rival
from cage import Cage, forget

MIB, GIB = 1 << 20, 1 << 30
SLACK = 48 * MIB    # of the promise: RSS and own page cache stay below budget + this
MARGIN = 64 * MIB   # of the promise: a limit of budget + this never kills
MOE = "qwen3moe-30b-a3b+Q4_K_M+layers=16+vocab=8192"
DENSE = "qwen3-4b+Q8_0"
SMALL = "qwen3-0.6b+Q4_K_M"
TINY_MOE = "qwen3moe-tiny+Q4_K_M"
CHECKS = {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "==": lambda a, b: a == b}


class Skipped(Exception):
    pass


class Rows:
    def __init__(self):
        self.rows = []

    def add(self, gate, model, budget, figure, unit, must=None):
        """must: (relation, value), or None for a figure that is only told."""
        holds = None if must is None else figure is not None and bool(CHECKS[must[0]](figure, must[1]))
        row = {"gate": gate, "model": model, "budget": budget, "figure": figure, "unit": unit,
               "must": None if must is None else "%s %g" % must, "holds": holds}
        self.rows.append(row)
        print("%-17s %-46s %9s  %10s %-34s %-9s %s" % (
            gate, model, "all" if budget is None else "%.2f GiB" % (budget / GIB), "-" if figure is None else "%.4g" % figure, unit,
            row["must"] or "", {True: "holds", False: "DOES NOT HOLD", None: ""}[holds]), flush=True)

    def skip(self, gate, why):
        self.rows.append({"gate": gate, "skipped": str(why)})
        print("%-17s skipped: %s" % (gate, why), flush=True)


class Sampler(threading.Thread):
    """The most that a process held, its own memory and the page cache of its cage, looked at every 20 ms."""

    def __init__(self, pid, cage):
        super().__init__(daemon=True)
        self.pid, self.cage, self.most, self.ended = pid, cage, 0, False
        self.start()

    @staticmethod
    def rss(pid):
        with open("/proc/%d/smaps_rollup" % pid) as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Rss:"))

    def cache(self):
        if not self.cage:
            return 0
        with open(self.cage.dir + "/memory.stat") as f:
            stat = dict(line.split() for line in f)
        # what is mapped from files (the program itself) is in Rss already
        return int(stat.get("total_cache", stat.get("file", 0))) - int(stat.get("total_mapped_file", stat.get("file_mapped", 0)))

    def run(self):
        with contextlib.suppress(OSError, StopIteration):
            while not self.ended:
                self.most = max(self.most, self.rss(self.pid) + max(0, self.cache()))
                time.sleep(0.02)

    def end(self):
        self.ended = True
        self.join()
        return self.most


class Rnbd:
    """A private daemon with one model, m."""

    def __init__(self, args, path, budget=None, cage=None, program=None):
        self.args, self.dir = args, tempfile.mkdtemp(prefix="rnbd-gate-")
        self.socket = os.path.join(self.dir, "c.sock")
        self.env = dict(os.environ, RNBD_SOCKET=self.socket, STATE_DIRECTORY=args.state, NO_COLOR="1")
        command = [program or args.build + "/rnbd", "--listen", "127.0.0.1:0", "--socket", self.socket, "--threads", str(args.threads),
                   "--model", "m=" + path] + (["--ram", str(budget)] if budget else [])
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(command, stderr=log, env=self.env, preexec_fn=cage.enter if cage else None)
        for _ in range(200):
            if os.path.exists(self.socket) and self.call("status") is not None:
                break
            time.sleep(0.05)
        self.sampler = Sampler(self.process.pid, cage)

    def call(self, *words, error=False):
        """The JSON answer; None when it failed.  With error: (answer, what it said)."""
        done = subprocess.run([self.args.build + "/rnbctl", "--json"] + list(words), env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        answer = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None
        return (answer, done.stderr.decode()) if error else answer

    def load(self, ctx=1024):
        answer, said = self.call("load", "m", "--ctx", str(ctx), error=True)
        if answer is None:
            self.stop()
            raise Skipped("rnbd does not load it: " + said.strip())
        return answer

    def bench(self, prompt, gen):
        answer, said = self.call("bench", "m", "--prompt", str(prompt), "--gen", str(gen), "--repeats", "1", error=True)
        if answer is None:
            raise Skipped("rnbctl bench failed: " + said.strip())
        return {t["test"]: t["median"] for t in answer["tests"]}

    def generate(self, prompt, n, each=None):
        """The log probabilities of an answer of at most n tokens, to the last bit, and the error that ended it or None.

        A synthetic model's tokens mostly have no text, so these are the answer.  each(tokens so far) after every token.
        """
        port = self.call("status")["port"]
        body = {"model": "m", "prompt": prompt, "max_tokens": n, "temperature": 0, "logprobs": 1, "stream": True}
        ask = urllib.request.Request("http://127.0.0.1:%d/v1/completions" % port, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
        answer = []
        try:
            with urllib.request.urlopen(ask, timeout=600) as reply:
                for line in reply:
                    if not line.startswith(b"data: {"):
                        continue
                    event = json.loads(line[6:])
                    if "error" in event:
                        return answer, event["error"]["message"]
                    for choice in event["choices"]:
                        answer += (choice.get("logprobs") or {}).get("token_logprobs", [])
                    if each and answer:
                        each(len(answer))
        except urllib.error.HTTPError as e:
            return answer, json.loads(e.read())["error"]["message"]
        except OSError as e:
            return answer, str(e)
        return answer, None

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Peak bytes, and the exit status."""
        most = self.sampler.end()
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        return most, status


class Gates:
    def __init__(self, args):
        self.args, self.rows = args, Rows()

    def model(self, name):
        path = os.path.join(self.args.models, name + ".gguf")
        if not os.path.exists(path):
            parts = name.split("+")
            command = [self.args.build + "/tests/mkmodel", "--preset", parts[0], "--type", parts[1]]
            os.makedirs(self.args.models, exist_ok=True)
            subprocess.run(command + ["--" + p for p in parts[2:]] + [path + ".part"], check=True, stdout=subprocess.DEVNULL)
            os.rename(path + ".part", path)
        return path

    @contextlib.contextmanager
    def caged(self, limit):
        try:
            cage = Cage(limit)
        except OSError as e:
            raise Skipped(e) from e
        with cage:
            yield cage

    def ours(self, path, limit, prompt, gen):
        """In a cage: {"pp", "tg", "peak", "cache"}."""
        forget(path)
        with self.caged(limit) as cage:
            d = Rnbd(self.args, path, limit - MARGIN, cage)
            try:
                d.load()
                d.bench(0, gen)  # the cache learns what decode uses
                before = d.call("cache", "m")
                rates = d.bench(prompt, gen)
                rates["before"], rates["cache"] = before, d.call("cache", "m")
            finally:
                rates_peak, status = d.stop()
        rates["peak"] = rates_peak
        if status != 0:
            raise Skipped("rnbd ended with %d within its limit" % status)
        return rates

    def theirs(self, path, limit, prompt, gen, ways):
        forget(path)
        with self.caged(limit) as cage:
            return rival.run(self.args.rival, path, rival.text(prompt), gen, self.args.threads, cage, ways)

    def race(self, gate, name, limit, prompt, gen, rival_gen, musts):
        """Alternating rounds; musts: {"tg": least ratio, "pp": …}.  Returns the last round of ours."""
        path = self.model(name)
        budget = limit - MARGIN
        ours, theirs, default = [], [], []
        for _ in range(self.args.rounds):
            ours.append(self.ours(path, limit, prompt, gen))
            if self.args.rival:
                theirs.append(self.theirs(path, limit, prompt, rival_gen, ("--no-repack", "-lm", "mmap")))
                default.append(self.theirs(path, limit, prompt, rival_gen, ()))
        for key, least in musts.items():
            mine = statistics.median(o[key] for o in ours)
            self.rows.add(gate, name, budget, mine, key + " tokens/s")
            for label, list_ in (("mmap, no repack", theirs), ("defaults", default)):
                got = [t[key] for t in list_ if t]
                if not self.args.rival:
                    continue
                if not got: # it cannot run at all in this limit
                    self.rows.add(gate, name, budget, None, "%s of rival, %s: killed" % (key, label))
                    continue
                theirs_median = statistics.median(got)
                self.rows.add(gate, name, budget, theirs_median, "%s of rival, %s" % (key, label))
                self.rows.add(gate, name, budget, mine / theirs_median, "x rival, %s" % label,
                              (">=", least) if label != "defaults" else None)
        if not self.args.rival:
            self.rows.skip(gate, "no rival was named (RIVAL=path/to/llama-completion)")
        self.rows.add("peak", name, budget, max(o["peak"] for o in ours) / MIB, "MiB held at most", ("<=", (budget + SLACK) / MIB))
        return ours[-1]

    # -- the gates ------------------------------------------------------------------------

    def reading(self, gate, name, budget, run):
        """What the cache's counters say about a run's reads."""
        if not run["cache"] or not run["before"]:
            self.rows.skip(gate, "rnbctl cache tells nothing")
            return
        was, now = counters(run["before"]), counters(run["cache"])
        busy_s = (now["busy_us"] - was["busy_us"]) / 1e6
        read = now["read_bytes"] - was["read_bytes"]
        if busy_s > 0 and now.get("drive_rate"):
            self.rows.add(gate, name, budget, 100 * read / busy_s / now["drive_rate"], "% of the calibrated rate while reading", (">=", 85))

    def streaming_moe(self):
        run = self.race("streaming-moe", MOE, 2 * GIB, 48, 48, 8, {"tg": 10})
        self.reading("streaming-moe", MOE, 2 * GIB - MARGIN, run)
        self.stream_race()

    def stream_race(self):
        """Owned slots against a map of the file with MADV_WILLNEED, the same choices and the same computing."""
        path = self.model(MOE)
        with self.caged(2 * GIB) as cage:
            forget(path)
            done = subprocess.run([self.args.build + "/tests/stream_race", "--json", "--budget", str(2 * GIB - 5 * MARGIN), path],
                                  stdout=subprocess.PIPE, preexec_fn=cage.enter)
        if done.returncode != 0:
            raise Skipped("stream_race ended with %d" % done.returncode)
        r = json.loads(done.stdout)
        for trace in r["traces"]:
            self.rows.add("streaming-moe", MOE + " trace " + trace["trace"], 2 * GIB, trace["slots_over_mapped"],
                          "x mapped with WILLNEED", (">=", 1.7))
            self.rows.add("streaming-moe", MOE + " trace " + trace["trace"], 2 * GIB, 100 * trace["share_of_bound"],
                          "% of the per-layer bound", (">=", 85))
            self.rows.add("streaming-moe", MOE + " trace " + trace["trace"], 2 * GIB, 100 * trace["share_of_max"],
                          "% of max(compute, I/O)")

    def streaming_prefill(self):
        self.race("streaming-prefill", MOE, 2 * GIB, 512, 8, 4, {"pp": 5})

    def streaming_dense(self):
        path = self.model(DENSE)
        size = os.path.getsize(path)
        for share, least in ((0.90, 3.0), (0.75, 1.9)):
            limit = int(size * share)
            run = self.race("streaming-dense", DENSE, limit, 48, 12, 4, {"tg": least})
            self.dense_bytes(limit - MARGIN, size, run, 12)
            self.reading("streaming-dense", DENSE, limit - MARGIN, run)

    def dense_bytes(self, budget, size, run, gen):
        if not run["cache"] or not run["before"]:
            return
        was, now = counters(run["before"]), counters(run["cache"])
        # the prompt's one batch streams as a token does
        per_token = (now["read_bytes"] - was["read_bytes"]) / (gen + 1)
        resident = now.get("resident_bytes")
        if resident:
            self.rows.add("streaming-dense", DENSE, budget, per_token / (size - resident), "x (size - resident) read for a token",
                          ("<=", 1.03))

    def fits(self):
        if not self.args.base:
            raise Skipped("no rnbd without residency was named (BASE=path/to/rnbd)")
        for name in (SMALL, MOE):
            path, rates = self.model(name), {"mine": [], "base": []}
            for _ in range(self.args.rounds):
                for who, program in (("mine", None), ("base", self.args.base)):
                    d = Rnbd(self.args, path, None, None, program)
                    try:
                        d.load()
                        rates[who].append(d.bench(48, 32)["tg"])
                    finally:
                        d.stop()
            self.rows.add("fits", name, None, statistics.median(rates["mine"]) / statistics.median(rates["base"]), "x speed of the base",
                          (">=", 0.98))

    def peak(self):
        """A load, an answer, a swap and an end, in a cage that would kill."""
        for name, budget in ((SMALL, 900 * MIB), (MOE, 2 * GIB - MARGIN)):
            path = self.model(name)
            forget(path)
            with self.caged(budget + MARGIN) as cage:
                d = Rnbd(self.args, path, budget, cage)
                try:
                    for _ in range(2):
                        d.load()
                        d.generate(rival.text(200), 16)
                        d.call("unload", "m")
                    alive = d.alive()
                finally:
                    most, status = d.stop()
            self.rows.add("peak", name, budget, most / MIB, "MiB held at most", ("<=", (budget + SLACK) / MIB))
            self.rows.add("peak", name, budget, 0 if alive and status == 0 else 1, "daemons killed", ("==", 0))

    def live_shrink(self):
        """The budget is halved at the tenth token; the same answer without that is what it must be."""
        path = self.model(MOE)
        answers, took = [], []
        for shrink in (False, True):
            d = Rnbd(self.args, path, 4 * GIB)

            def cut(tokens, d=d):
                if tokens != 10 or took:
                    return
                begun = time.monotonic()
                _, said = d.call("budget", "ram=2GiB", error=True)
                while Sampler.rss(d.process.pid) > 2 * GIB + SLACK and time.monotonic() - begun < 20:
                    time.sleep(0.005)
                took.append(time.monotonic() - begun)
                if said:
                    print("live-shrink:", said.strip(), file=sys.stderr)
            try:
                d.load()
                d.generate(rival.text(300), 24) # so that more than 2 GiB are held
                held = Sampler.rss(d.process.pid)
                answer, error = d.generate(rival.text(64), 40, cut if shrink else None)
                answers.append(answer)
                if error:
                    print("live-shrink:", error, file=sys.stderr)
            finally:
                d.stop()
        self.rows.add("live-shrink", MOE, 4 * GIB, held / MIB, "MiB held before")
        self.rows.add("live-shrink", MOE, 2 * GIB, took[0] if took else None, "s until it was given back", ("<", 1))
        self.rows.add("live-shrink", MOE, 2 * GIB, 0 if answers[0] and answers[0] == answers[1] else 1, "answers that differ", ("==", 0))

    def one_answer(self):
        done = subprocess.run([self.args.build + "/tests/check_stream"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout.decode("utf-8", "replace").strip().splitlines()[-1])
        self.rows.add("one-answer", "tiny models of all families", None, done.returncode, "digests that differ (exit status)", ("==", 0))

    def faults(self):
        """Unit tests hold EIO, short reads and refused charges; here a file is cut under a daemon that streams from it."""
        done = subprocess.run(["make", "--no-print-directory", "B=" + self.args.build, "check-unit", "ROOM=memory model"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.rows.add("faults", "unit tests of memory and model", None, done.returncode, "exit status", ("==", 0))
        source = self.model(TINY_MOE)
        with tempfile.TemporaryDirectory(dir=self.args.models) as folder:
            path = shutil.copy(source, os.path.join(folder, "cut.gguf"))
            d = Rnbd(self.args, path)
            plan = d.call("plan", "m", "--ctx", "512") or {}
            d.stop()
            budget = int(plan["floor"] + (plan["total"] - plan["floor"]) * 0.3)
            d = Rnbd(self.args, path, budget)
            try:
                start = used(d)
                d.load(512)
                os.truncate(path, os.path.getsize(path) // 2)
                forget(path)
                _, error = d.generate(rival.text(100), 64)
                named = "blk." in (error or "")
                d.call("unload", "m", "--force")
                left, alive = used(d), d.alive() and d.call("status") is not None
            finally:
                _, status = d.stop()
            self.rows.add("faults", TINY_MOE + ", cut", budget, 1 if named else 0, "failed requests that name the tensor", ("==", 1))
            if not named:
                print("faults:", error, file=sys.stderr)
            self.rows.add("faults", TINY_MOE + ", cut", budget, 0 if alive and status == 0 else 1, "daemons lost", ("==", 0))
            self.rows.add("faults", TINY_MOE + ", cut", budget, left - start, "bytes left in the ledger", ("==", 0))


def used(daemon):
    return daemon.call("memory")["pools"][0]["used"]


def counters(answer):
    """The counters of the one model in a cache report."""
    return answer["models"][0] if "models" in answer else answer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--gate", action="append", default=[])
    p.add_argument("--rival")
    p.add_argument("--base")
    p.add_argument("--out")
    p.add_argument("--models")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    args.models = os.path.abspath(args.models or args.build + "/models")
    args.state = tempfile.mkdtemp(prefix="rnbd-gate-state-")
    all_gates = ("streaming-moe", "streaming-prefill", "streaming-dense", "fits", "peak", "live-shrink", "one-answer", "faults")
    unknown = [g for g in args.gate if g not in all_gates]
    if unknown:
        p.error("there is no gate %s; there are: %s" % (unknown[0], " ".join(all_gates)))
    gates = Gates(args)
    for gate in args.gate or all_gates:
        try:
            getattr(gates, gate.replace("-", "_"))()
        except Skipped as why:
            gates.rows.skip(gate, why)
    shutil.rmtree(args.state, ignore_errors=True)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(gates.rows.rows, f, indent=1)
            f.write("\n")
    broken = [r for r in gates.rows.rows if r.get("holds") is False]
    print("gates: %d held, %d did not, %d skipped" % (
        sum(r.get("holds") is True for r in gates.rows.rows), len(broken), sum("skipped" in r for r in gates.rows.rows)))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
