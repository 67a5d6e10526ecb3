#!/usr/bin/env python3
"""The gates of streaming: rnbd within a memory limit, beside llama.cpp within the same one.

    gates.py --build build [--gate NAME]... [--rival path/to/llama-completion] [--out gates.json] [--models DIR]
             [--use MOE=FILE] [--use DENSE=FILE] [--use SMALL=FILE] [--rounds 3] [--threads 2]

Runs alternate, and the page cache of the model is dropped before each.  Every figure is a row {gate, model, budget, figure,
unit, must, holds} of the file named by --out; holds is null for a figure that is only told.  A gate that cannot be tried
here (no cgroup to write, no rival named, no room on the disk) is skipped with a word.  Exit status 1 when a row does not hold.

Models are generated below --models where they are not there yet; --use takes files that exist.  What each gate is:
"""
import argparse
import contextlib
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import rival
from cage import Cage, forget
from gate_rig import GIB, MARGIN, MIB, SLACK, Rnbd, Rows, Sampler, Skipped, available_bytes, digest, memory_bytes, read_through

NAMES = {"MOE": "qwen3moe-30b-a3b+Q4_K_M+layers=16+vocab=8192", "DENSE": "qwen3-4b+Q8_0", "SMALL": "qwen3-0.6b+Q4_K_M"}
TINY_MOE = "qwen3moe-tiny+Q4_K_M"
FLAT_MOE = "qwen3moe-30b-a3b+Q4_K_M+layers=2+vocab=8192"  # few layers, for long prompts
LARGE = "qwen3moe-30b-a3b+Q4_K_M+layers=%d+vocab=8192"
LARGE_LAYER = 0.3762 * GIB  # of such a model
MAPPED, DEFAULTS = "mmap, no repack", "defaults"
WAYS = {MAPPED: ("--no-repack", "-lm", "mmap"), DEFAULTS: ()}
RIVAL_S = 300  # for one run of it
LONG_PROMPT = 32000
TEACH = 4  # times as many tokens as are measured come before them
BURSTS = 150  # of an answer, read again to see what the drive gives to them
TURNS = 3  # of an answer and what it is measured against, in each run


def delta(before, after, key):
    return after.get(key, 0) - before.get(key, 0)


def more(before, after):
    """What was counted between two lists of counts, of which the later may be longer."""
    return [n - (before[i] if i < len(before) else 0) for i, n in enumerate(after)]


def missed(turn):
    """Choices of decode that missed 1, 2, … experts in an answer, in all layers."""
    layers = [more(a["missed"], b["missed"])[1:] for a, b in zip(turn["before"]["layers"], turn["after"]["layers"])]
    return [sum(counts) for counts in itertools.zip_longest(*layers, fillvalue=0)]


def turns_of(ours):
    """The answers of all runs."""
    return [t for o in ours for t in o["turns"]]


def calibrated(cache):
    """Bytes a second of the drive as the daemon measured it, for reads like the model's."""
    return cache.get("drive_mb_per_s", 0) * 1e6


def median(runs, key):
    return statistics.median(r[key] for r in runs)


class Gates:
    """One method a gate."""

    def __init__(self, args):
        self.args, self.rows = args, Rows()
        self.races = {}  # a race serves two gates

    # -- tools --------------------------------------------------------------------------------

    def model(self, which):
        """The path of MOE, DENSE or SMALL, or of a generated one by its name."""
        if which in self.args.used:
            return self.args.used[which]
        name = NAMES.get(which, which)
        path = os.path.join(self.args.models, name + ".gguf")
        if not os.path.exists(path):
            self.rows.progress("generating " + name)
            parts = name.split("+")
            command = [self.args.build + "/tests/mkmodel", "--preset", parts[0], "--type", parts[1]]
            os.makedirs(self.args.models, exist_ok=True)
            try:
                subprocess.run(command + ["--" + p for p in parts[2:]] + [path + ".part"], check=True, stdout=subprocess.DEVNULL)
            except subprocess.CalledProcessError as e:
                with contextlib.suppress(OSError):
                    os.unlink(path + ".part")
                raise Skipped("%s cannot be generated in %s" % (name, self.args.models)) from e
            os.rename(path + ".part", path)
        return path

    def label(self, which):
        return os.path.splitext(os.path.basename(self.model(which)))[0]

    @contextlib.contextmanager
    def caged(self, limit):
        try:
            cage = Cage(limit)
        except OSError as e:
            raise Skipped(e) from e
        with cage:
            yield cage

    def tool(self, name, *words, cage=None):
        """The JSON that one of the project's own tools prints."""
        done = subprocess.run([self.args.build + "/tests/" + name] + list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=cage.enter if cage else None, check=False)
        if done.returncode != 0:
            raise Skipped("%s ended with %d: %s" % (name, done.returncode, done.stderr.decode("utf-8", "replace").strip()))
        return json.loads(done.stdout)

    # -- races --------------------------------------------------------------------------------

    def ours(self, path, limit, prompt, gen):
        """In a cage: speeds of prefill and decode, the most it held, and for each turn of decode what it was measured against."""
        forget(path)
        with self.resident(path, gen) as whole_s:
            read_through(path)
            with self.caged(limit) as cage, Rnbd(self.args, path, limit - MARGIN, cage) as d:
                d.load()
                plan = d.call("plan", "m", "--ctx", "1024") or {}
                # the cache fills, and learns what decode uses
                d.sample(TEACH * gen if plan.get("n_experts") else gen, 1)
                turns, rates = [], [self.drive(path, plan, d.dir)]
                for i in range(TURNS):
                    turns.append(self.turn(d, gen, 2 + i, whole_s))
                    rates.append(self.drive(path, plan, d.dir))
                    turns[-1].update(plan=plan, rate=statistics.mean(rates[-2:]), bursts=self.bursts(path, turns[-1], d.dir))
                marks = [d.cache("--experts")]
                run = d.bench(prompt, 0)
                marks.append(d.cache("--experts"))
                run["peak"], status = d.stop()
        if status != 0:
            raise Skipped("rnbd ended with %d within its limit" % status)
        run.update(plan=plan, prefill=marks, turns=turns, tg=median(turns, "tg"))
        return run

    @staticmethod
    def turn(d, gen, seed, whole_s):
        """An answer: its speed, what the cache counted, and the seconds of such a token with everything resident and no cage, measured
        right before and right behind: memory that gives 54 GB/s now may give 32 in ten seconds."""
        before, beside = d.cache(), [whole_s()]
        tg = d.sample(gen, seed)
        after = d.cache()
        beside.append(whole_s())
        return {"tg": tg, "before": before, "after": after, "gen": gen, "whole_s": statistics.mean(beside) if all(beside) else None}

    def drive(self, path, plan, state):
        """Bytes a second that the reader gets with nothing beside it, as the daemon has calibrated it, in the order of what is measured:
        slices of experts here and there, or layers one after another, without a pause.  A shared drive differs by a fifth from one ten
        seconds to the next, so this is done before and behind each answer."""
        order = [] if plan.get("n_experts") else ["--in-order", "--slice", str(8 * MIB)]
        return self.tool("read_drive", "--json", "--seconds", "1.5", "--state", state, *order, path)["bytes_per_s"]

    def bursts(self, path, turn, state):
        """The same of the reads that an answer of a mixture has caused: as many experts at once as each of its choices missed, after
        silences as long as its were; None where none missed."""
        counts, busy = missed(turn), delta(turn["before"], turn["after"], "busy_ms")
        if not sum(counts):
            return None
        silence = max(0, 1e6 * (turn["gen"] - 1) / turn["tg"] - 1e3 * busy) / sum(counts)
        expert = statistics.mean(layer["slot_bytes"] for layer in turn["after"]["layers"])
        few = min(1, BURSTS / sum(counts))  # in proportion, and the rarest once
        words = ",".join("%d:%d" % (i + 1, max(1, round(n * few))) for i, n in enumerate(counts) if n)
        return self.tool("read_drive", "--json", "--bursts", words, "--silence", str(int(silence)), "--slice", str(int(expert / 3)),
                         "--state", state, path)["bytes_per_s"]

    @contextlib.contextmanager
    def resident(self, path, gen):
        """Something to call for the seconds of a token with everything resident and no cage; of None where memory has no room for that."""
        if available_bytes() < os.path.getsize(path) + 3 * GIB:
            yield lambda: None
            return
        with Rnbd(self.args, path) as d:
            d.load()
            d.sample(gen, 1)
            yield lambda: 1 / d.sample(gen, 2)

    def theirs(self, path, limit, prompt, gen, way):
        forget(path)
        with self.caged(limit) as cage:
            return rival.run(self.args.rival, path, rival.text(prompt), gen, self.args.threads, cage, WAYS[way], RIVAL_S)

    def race(self, which, limit, prompt, gen, rival_gen):
        """Alternating rounds, run once for all gates that ask: (ours, {way: theirs that ended})."""
        key = (which, limit, prompt, gen)
        if key not in self.races:
            path = self.model(which)
            ours, theirs = [], {way: [] for way in WAYS} if self.args.rival else {}
            for i in range(self.args.rounds):
                self.rows.progress("%s in %.2f GiB, round %d of %d" % (self.label(which), limit / GIB, i + 1, self.args.rounds))
                ours.append(self.ours(path, limit, prompt, gen))
                for way, runs in theirs.items():
                    # what was killed once is not tried again
                    if runs != [None]:
                        runs.append(self.theirs(path, limit, prompt, rival_gen, way))
            self.races[key] = ours, {way: [r for r in runs if r] for way, runs in theirs.items()}
        return self.races[key]

    def compare(self, gate, which, limit, race, key, least):
        """Rows of one speed of a race, and of the peak."""
        ours, theirs = race
        name, budget, mine = self.label(which), limit - MARGIN, median(ours, key)
        self.rows.add(gate, name, budget, mine, key + " tokens/s")
        for way, runs in theirs.items():
            if not runs:
                self.rows.add(gate, name, budget, None, "%s of rival, %s: killed, or over %d s" % (key, way, RIVAL_S))
                continue
            self.rows.add(gate, name, budget, median(runs, key), "%s of rival, %s" % (key, way))
            self.rows.add(gate, name, budget, mine / median(runs, key), "x rival, " + way, (">=", least) if way == MAPPED else None)
        if not theirs:
            self.rows.skip(gate, "no rival was named (RIVAL=path/to/llama-completion)")
        self.rows.add("peak", name, budget, max(o["peak"] for o in ours) / MIB, "MiB held at most", ("<=", (budget + SLACK) / MIB))

    def reading(self, gate, which, limit, ours, steadily):
        """The drive's share while it reads, in decode: of the rate that it gives to reads which never stop, right before and behind each
        answer, where those are what is to be reached (steadily); of that which it gives to the same reads where a model misses too little
        for that: one expert now and then, each after a silence, from which a drive takes a while to come back."""
        of_load, of_steady, of_same = [], [], []
        for t in turns_of(ours):
            read, busy = delta(t["before"], t["after"], "read"), delta(t["before"], t["after"], "busy_ms")
            if busy <= 0:
                continue
            rate = 1e3 * read / busy
            of_steady.append(100 * rate / t["rate"])
            if calibrated(t["after"]):
                of_load.append(100 * rate / calibrated(t["after"]))
            if t["bursts"]:
                of_same.append(100 * rate / t["bursts"])
        must = (">=", 85)
        for shares, of, judged in ((of_steady, "drive's rate", steadily), (of_same, "drive's rate for the same reads", not steadily),
                                   (of_load, "drive's rate when it was loaded", False)):
            if judged and not shares:
                self.rows.skip(gate, "%s read nothing in %.2f GiB" % (self.label(which), limit / GIB))
            if shares:
                self.rows.add(gate, self.label(which), limit - MARGIN, statistics.median(shares), "% of the " + of + ", while reading",
                              must if judged else None)

    # -- the gates ----------------------------------------------------------------------------

    def streaming_moe(self):
        """a mixture of 6 GiB in a limit of 2 GiB: decode beside llama.cpp's, the drive's share, the per-layer bound"""
        limit = 2 * GIB
        race = self.race("MOE", limit, 512, 48, 3)
        self.compare("streaming-moe", "MOE", limit, race, "tg", 10)
        self.reading("streaming-moe", "MOE", limit, race[0], False)
        self.moe_bound(limit, race[0], 85)
        # in so little most experts miss, and the drive is the limit
        tight = 3 * GIB // 4
        self.rows.progress("%s in %.2f GiB" % (self.label("MOE"), tight / GIB))
        ours = [self.ours(self.model("MOE"), tight, 64, 48) for _ in race[0]]
        self.reading("streaming-moe", "MOE", tight, ours, True)
        self.moe_bound(tight, ours)
        self.stream_race(limit)

    def moe_bound(self, limit, ours, least=None):
        """A token takes at least, layer by layer, its dense part and the longer of missed bytes and hits' compute.

        Both computings are shares, by bytes, of a token with everything resident.  The longer of the two is taken of every choice of
        every token: most of a layer's miss nothing and wait for their hits, the others wait for the drive.  Of means over the tokens,
        which are told, a layer that misses now and then would never wait for the drive.
        """
        name, budget = self.label("MOE"), limit - MARGIN
        shares, of_means, of_max = [], [], []
        for t in turns_of(ours):
            before, after, rate, gen = t["before"], t["after"], t["rate"], t["gen"]
            total, used, whole_s = t["plan"]["bytes_per_token"], t["plan"]["n_experts_used"], t["whole_s"]
            layers = list(zip(before["layers"], after["layers"]))
            if not whole_s:
                continue
            bound = means = whole_s * max(0, 1 - used * sum(b["slot_bytes"] for _, b in layers) / total)
            for a, b in layers:
                expert, counts = b["slot_bytes"], more(a["missed"], b["missed"])
                choices = max(1, sum(counts))
                for n_missed, n in enumerate(counts):
                    bound += n / choices * max(n_missed * expert / rate, whole_s * (used - n_missed) * expert / total)
                means += max(delta(a, b, "read") / gen / rate, whole_s * delta(a, b, "hit") / gen / total)
            shares.append(100 * bound * t["tg"])
            of_means.append(100 * means * t["tg"])
            of_max.append(100 * max(whole_s, delta(before, after, "read") / gen / rate) * t["tg"])
        if shares:
            self.rows.add("streaming-moe", name, budget, statistics.median(shares), "% of the per-layer bound",
                          (">=", least) if least else None)
            self.rows.add("streaming-moe", name, budget, statistics.median(of_means), "% of the per-layer bound of mean tokens")
            self.rows.add("streaming-moe", name, budget, statistics.median(of_max), "% of max(compute, I/O)")
        else:
            self.rows.skip("streaming-moe", "the bound needs the model in memory, which has no room for it now")

    def stream_race(self, limit):
        """Owned slots against a map of the file with MADV_WILLNEED, the same choices and the same computing."""
        path, name = self.model("MOE"), self.label("MOE")
        self.rows.progress("%s, slots beside a map" % name)
        with self.caged(limit) as cage:
            forget(path)
            traces = self.tool("stream_race", "--json", "--budget", str(limit - 5 * MARGIN), path, cage=cage)["traces"]
        for t in traces:
            label = "%s trace %s" % (name, t["trace"])
            self.rows.add("streaming-moe", label, limit, t["slots_over_mapped"], "x a map with WILLNEED", (">=", 1.7))
            self.rows.add("streaming-moe", label, limit, 100 * t["share_of_bound"], "% of the per-layer bound, without computing")
            self.rows.add("streaming-moe", label, limit, 100 * t["share_of_max"], "% of max(compute, I/O)")

    def streaming_prefill(self):
        """the same, a prompt of 512 tokens: beside llama.cpp's, and each expert read once for a chunk"""
        limit = 2 * GIB
        race = self.race("MOE", limit, 512, 48, 3)
        self.compare("streaming-prefill", "MOE", limit, race, "pp", 5)
        most, read = 0, []
        for o in race[0]:
            before, after = o["prefill"]
            chunks = -(-512 // o["plan"]["n_batch"])
            for a, b in zip(before["experts"], after["experts"]):
                most = max(most, max(more(a["reads"], b["reads"])) / chunks)
            read.append(delta(before, after, "read") / chunks / after["weights"])
        self.rows.add("streaming-prefill", self.label("MOE"), limit - MARGIN, most, "reads of an expert for a chunk, at most", ("<=", 1))
        self.rows.add("streaming-prefill", self.label("MOE"), limit - MARGIN, max(read), "x all weights, read for a chunk")

    def streaming_dense(self):
        """a dense model of 4 GiB in limits of 90 % and 75 % of its size: beside llama.cpp's, bytes and the drive's share"""
        size = os.path.getsize(self.model("DENSE"))
        for share, least in ((0.90, 3.0), (0.75, 1.9)):
            limit, gen = int(size * share), 12
            race = self.race("DENSE", limit, 48, gen, 4)
            self.compare("streaming-dense", "DENSE", limit, race, "tg", least)
            self.reading("streaming-dense", "DENSE", limit, race[0], True)
            self.dense_bytes(limit - MARGIN, race[0])

    def dense_bytes(self, budget, ours):
        name, bytes_, bound, told = self.label("DENSE"), [], [], []
        for t in turns_of(ours):
            read = delta(t["before"], t["after"], "read") / t["gen"]
            missing = t["after"]["weights"] - t["after"]["resident"]
            if missing > 0:
                bytes_.append(read / missing)
                bound.append(100 * max(read / t["rate"], t["whole_s"] or 0) * t["tg"])
                told.append(100 * read / t["rate"] * t["tg"])
        if not bytes_:
            raise Skipped("%s is all resident in %.2f GiB" % (name, budget / GIB))
        self.rows.add("streaming-dense", name, budget, statistics.median(bytes_), "x (size - resident), read for a token", ("<=", 1.03))
        self.rows.add("streaming-dense", name, budget, statistics.median(told), "% of missed bytes / drive rate")
        self.rows.add("streaming-dense", name, budget, statistics.median(bound), "% of max(compute, missed bytes / drive rate)", (">=", 85))

    def fits(self):
        """no limit: a token beside the same operations with residency passed by, alternating in one process"""
        for which in ("SMALL", "MOE"):
            path, runs = self.model(which), []
            if available_bytes() < os.path.getsize(path) + GIB:
                self.rows.skip("fits", "%s has no room in memory now" % self.label(which))
                continue
            self.rows.progress("%s, all resident" % self.label(which))
            for _ in range(self.args.rounds):
                runs.append(self.tool("bypass", "--threads", str(self.args.threads), path))
            self.rows.add("fits", self.label(which), None, 1000 / median(runs, "ms"), "tg tokens/s")
            self.rows.add("fits", self.label(which), None, median(runs, "watched"), "x that speed, of the first 64 tokens of 512")
            self.rows.add("fits", self.label(which), None, median(runs, "speed"), "x the speed with residency passed by", (">=", 0.98))

    def peak(self):
        """loads, a prompt of 32k, decode, swaps of two models and an end in limits that would kill; the races above add rows of theirs"""
        for which, second, budget, long_prompt in (("SMALL", FLAT_MOE, 900 * MIB, 0), ("MOE", FLAT_MOE, 2 * GIB - MARGIN, 0),
                                                   (FLAT_MOE, "SMALL", 640 * MIB, LONG_PROMPT)):
            path, other, name = self.model(which), self.model(second), self.label(which)
            forget(path)
            forget(other)
            with self.caged(budget + MARGIN) as cage, Rnbd(self.args, path, budget, cage, others={"other": other}, timed=False) as d:
                if long_prompt:
                    self.long_answer(d, name, budget, long_prompt)
                for _ in range(2):
                    d.load(512, "other")  # beside what is there, or in its place
                    d.complete(rival.text(200), 16, model="other").close()
                    d.generate(rival.text(200), 16)
                    d.call("unload", "m")
                alive = d.alive()
                most, status = d.stop()
            self.rows.add("peak", name, budget, most / MIB, "MiB held at most, from start to end", ("<=", (budget + SLACK) / MIB))
            self.rows.add("peak", name, budget, 0 if alive and status == 0 else 1, "daemons killed", ("==", 0))

    def long_answer(self, d, name, budget, n):
        """Loads with room for that many tokens, and answers a prompt of about as many."""
        self.rows.progress("%s, a prompt of %d tokens" % (name, n))
        d.load(n + 64)
        answer, error = d.generate([1024 + i * 7919 % 7000 for i in range(n)], 16)
        self.rows.add("peak", name, budget, len(answer), "tokens behind a prompt of %d" % n, ("==", 16))
        if error:
            print("peak:", error, file=sys.stderr)

    def live_shrink(self):
        """4 GiB become 2 GiB at the tenth token: how long until they are back; the answer is that of an undisturbed run"""
        path, name = self.model("MOE"), self.label("MOE")
        answers, took, held = [], [], 0
        for shrink in (False, True):
            with Rnbd(self.args, path, 4 * GIB) as d:

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

                d.load()
                d.generate(rival.text(600), 24)  # so that more than 2 GiB are held
                held = Sampler.rss(d.process.pid)
                answer, error = d.generate(rival.text(64), 40, cut if shrink else None)
                answers.append(answer)
                if error:
                    print("live-shrink:", error, file=sys.stderr)
        self.rows.add("live-shrink", name, 4 * GIB, held / MIB, "MiB held before", (">=", 2 * GIB / MIB))
        self.rows.add("live-shrink", name, 2 * GIB, took[0] if took else None, "s until it was given back", ("<", 1))
        self.rows.add("live-shrink", name, 2 * GIB, 0 if answers[0] and answers[0] == answers[1] else 1, "answers that differ", ("==", 0))

    def one_answer(self):
        """one digest at the floor, 1.1 times it, half and all: tiny models of all families, and two real sizes"""
        for label, words in (("tiny models of all families", []), (self.label("SMALL"), ["--tokens", "8", self.model("SMALL")]),
                             (self.label("MOE"), ["--floor", "1.1", "--prompt", "64", "--tokens", "8", self.model("MOE")])):
            self.rows.progress("one digest of " + label)
            done = subprocess.run([self.args.build + "/tests/check_stream"] + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            said = done.stdout.decode("utf-8", "replace").strip().splitlines() or [""]
            count = re.match(r"(\d+) passed, (\d+) failed", said[-1])
            self.rows.add("one-answer", label, None, int(count[1]) if count else None, "ways with one digest")
            self.rows.add("one-answer", label, None, int(count[2]) if count else None, "ways with another", ("==", 0))
            if not count:
                print("one-answer:", said[-1], file=sys.stderr)

    def curve(self):
        """what other cache sizes would hit: predicted from one run beside real, at three sizes, on three kinds of traces"""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "curve.json")
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "curve_check.py")
            subprocess.run([sys.executable, script, "--build", self.args.build, "--model", self.model("MOE"), "--out", out],
                           stdout=subprocess.DEVNULL, check=False)
            if not os.path.exists(out):
                raise Skipped("curve_check.py came to nothing")
            with open(out, encoding="utf-8") as f:
                rows = json.load(f)
        for trace in sorted({r["trace"] for r in rows}):
            worst = max(abs(r["predicted"] - r["real"]) for r in rows if r["trace"] == trace)
            self.rows.add("curve", trace, None, worst, "points of hit rate off at most", ("<=", 2))

    def faults(self):
        """EIO, short reads, cut files, refused charges by unit tests; a file is cut under a daemon that streams from it"""
        for room, case in (("memory", None), ("model", "faults"), ("engine", "memory")):
            env = dict(os.environ, **({"CK_RUN_CASE": case} if case else {}))
            done = subprocess.run([self.args.build + "/tests/unit_" + room], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            checks = re.search(rb"Checks: (\d+), Failures: (\d+), Errors: (\d+)", done.stdout)
            label = "unit tests of " + room + (", " + case if case else "")
            self.rows.add("faults", label, None, int(checks[1]) if checks else 0, "checks", (">=", 1))
            self.rows.add("faults", label, None, int(checks[2]) + int(checks[3]) if checks else None, "failures", ("==", 0))
        source = self.model(TINY_MOE)
        with tempfile.TemporaryDirectory(dir=self.args.models) as folder:
            path = shutil.copy(source, os.path.join(folder, "cut.gguf"))
            with Rnbd(self.args, path) as d:
                plan = d.call("plan", "m", "--ctx", "512") or {}
            budget = int(plan["floor"] + (plan["total"] - plan["floor"]) * 0.3)
            with Rnbd(self.args, path, budget) as d:
                start = d.used()
                d.load(512)
                os.truncate(path, os.path.getsize(path) // 2)
                forget(path)
                _, error = d.generate(rival.text(100), 64)
                named = "blk." in (error or "")
                d.call("unload", "m", "--force")
                left, alive = d.used(), d.alive() and d.call("status") is not None
                _, status = d.stop()
            self.rows.add("faults", TINY_MOE + ", cut", budget, 1 if named else 0, "failed requests that name the tensor", ("==", 1))
            if not named:
                print("faults:", error, file=sys.stderr)
            self.rows.add("faults", TINY_MOE + ", cut", budget, 0 if alive and status == 0 else 1, "daemons lost", ("==", 0))
            self.rows.add("faults", TINY_MOE + ", cut", budget, left - start, "bytes left in the ledger", ("==", 0))

    def large(self):
        """a model of twice the machine's memory, or what the disk has room for: 16 tokens in 8 GiB and in 16, one digest"""
        ram, room = memory_bytes(), shutil.disk_usage(self.args.models if os.path.isdir(self.args.models) else ".").free - 6 * GIB
        path = self.args.used.get("LARGE")
        if path is None and room < 1.3 * ram:
            raise Skipped("the disk has %.1f GiB to spare, and a model of %.1f or more is wanted" % (room / GIB, 1.3 * ram / GIB))
        made = path is None
        path = path or self.model(LARGE % int(min(2 * ram, room) / LARGE_LAYER))
        name, answers = os.path.basename(path), []
        try:
            self.rows.add("large", name, None, os.path.getsize(path) / ram, "x the memory of the machine")
            for budget in (min(8 * GIB, int(0.4 * ram)), min(16 * GIB, int(0.75 * ram))):
                answers.append(self.large_answer(path, name, budget))
        finally:
            if made:
                os.unlink(path)
        self.rows.add("large", name, None, 0 if answers[0] and answers[0] == answers[1] else 1, "answers that differ", ("==", 0))

    def large_answer(self, path, name, budget):
        self.rows.progress("%s in %.1f GiB" % (name, budget / GIB))
        forget(path)
        with self.caged(budget + MARGIN) as cage, Rnbd(self.args, path, budget, cage) as d:
            d.load()
            times, began = [], time.monotonic()
            answer, error = d.generate(rival.text(400), 16, lambda _: times.append(time.monotonic()))
            if error:
                print("large:", error, file=sys.stderr)
            held, status = d.stop()
        self.rows.add("large", name, budget, len(answer), "tokens; digest " + digest(answer), ("==", 16))
        if len(times) > 1:
            self.rows.add("large", name, budget, times[0] - began, "s to the first token of a prompt of 400")
            self.rows.add("large", name, budget, (len(times) - 1) / (times[-1] - times[0]), "tg tokens/s")
        self.rows.add("large", name, budget, held / MIB, "MiB held at most", ("<=", (budget + SLACK) / MIB))
        self.rows.add("large", name, budget, status, "exit status", ("==", 0))
        return answer


ALL = ("streaming-moe", "streaming-prefill", "streaming-dense", "fits", "peak", "live-shrink", "one-answer", "curve", "faults", "large")


def method(gate):
    return getattr(Gates, gate.replace("-", "_"))


def parse():
    p = argparse.ArgumentParser(description=__doc__ + "\n".join("  %-18s%s" % (g, method(g).__doc__) for g in ALL),
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--gate", action="append", default=[], choices=ALL)
    p.add_argument("--rival")
    p.add_argument("--out")
    p.add_argument("--models")
    p.add_argument("--use", action="append", default=[], metavar="MOE=FILE")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    args.models = os.path.abspath(args.models or args.build + "/models")
    args.used = dict(u.partition("=")[::2] for u in args.use)
    for which, path in args.used.items():
        if which not in ("MOE", "DENSE", "SMALL", "LARGE") or not os.path.exists(path):
            p.error("--use takes MOE, DENSE, SMALL or LARGE and a file that is there, not '%s=%s'" % (which, path))
        args.used[which] = os.path.abspath(path)
    return args


def main():
    args = parse()
    gates = Gates(args)
    for gate in args.gate or ALL:
        gates.rows.progress("gate " + gate)
        try:
            method(gate)(gates)
        except Skipped as why:
            gates.rows.skip(gate, why)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(gates.rows.rows, f, indent=1)
            f.write("\n")
    broken = [r for r in gates.rows.rows if r.get("holds") is False]
    print("gates: %d held, %d did not, %d skipped" % (
        sum(r.get("holds") is True for r in gates.rows.rows), len(broken), sum("skipped" in r for r in gates.rows.rows)))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
