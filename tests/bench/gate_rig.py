"""What gates stand on: rows of figures, a private daemon, and eyes on its memory; see gates.py."""
import contextlib
import hashlib
import itertools
import json
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

MIB, GIB = 1 << 20, 1 << 30
SLACK = 48 * MIB    # of the promise: RSS and own page cache stay below budget + this
MARGIN = 64 * MIB   # of the promise: a limit of budget + this never kills
CHECKS = {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "==": lambda a, b: a == b}


class Skipped(Exception):
    pass


class Rows:
    def __init__(self):
        self.rows, self.began = [], time.monotonic()

    def add(self, gate, model, budget, figure, unit, must=None):
        """must: (relation, value), or None for a figure that is only told."""
        holds = None if must is None else figure is not None and bool(CHECKS[must[0]](figure, must[1]))
        row = {"gate": gate, "model": model, "budget": budget, "figure": figure, "unit": unit,
               "must": None if must is None else "%s %g" % must, "holds": holds}
        self.rows.append(row)
        print("%-17s %-46s %9s  %10s %-44s %-9s %s" % (
            gate, model, "all" if budget is None else "%.2f GiB" % (budget / GIB), "-" if figure is None else "%.4g" % figure, unit,
            row["must"] or "", {True: "holds", False: "DOES NOT HOLD", None: ""}[holds]), flush=True)

    def skip(self, gate, why):
        self.rows.append({"gate": gate, "skipped": str(why)})
        print("%-17s skipped: %s" % (gate, why), flush=True)

    def progress(self, what):
        print("%5d s  %s" % (time.monotonic() - self.began, what), flush=True)


class Sampler(threading.Thread):
    """The most that a process held until it ended: its own memory, looked at every 20 ms, and the page cache of its cage.

    That one is looked at every 200 ms where a speed is measured meanwhile: the kernel sums up for it, which took 10 to 18 % of that.
    """

    def __init__(self, pid, cage, timed=True):
        super().__init__(daemon=True)
        self.pid, self.cage, self.most, self.ended = pid, cage, 0, False
        self.cache_every = 10 if timed else 1
        self.start()

    @staticmethod
    def rss(pid):
        with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Rss:"))

    def cache(self):
        if not self.cage:
            return 0
        with open(self.cage.dir + "/memory.stat", encoding="ascii") as f:
            stat = dict(line.split() for line in f)
        # what is mapped from files (the program itself) is in Rss already
        return int(stat.get("total_cache", stat.get("file", 0))) - int(stat.get("total_mapped_file", stat.get("file_mapped", 0)))

    def run(self):
        cache = 0
        with contextlib.suppress(OSError, StopIteration):
            for i in itertools.count():
                if self.ended:
                    break
                cache = max(0, self.cache()) if i % self.cache_every == 0 else cache
                self.most = max(self.most, self.rss(self.pid) + cache)
                time.sleep(0.02)

    def end(self):
        self.ended = True
        self.join()
        return self.most


class Rnbd:
    """A private daemon with one model, m, and others by their names; calibrates its drive anew unless state is given."""

    def __init__(self, args, path, budget=None, cage=None, state=None, others=None, timed=True):
        self.args, self.dir = args, tempfile.mkdtemp(prefix="rnbd-gate-")
        self.socket = os.path.join(self.dir, "c.sock")
        self.env = dict(os.environ, RNBD_SOCKET=self.socket, STATE_DIRECTORY=state or self.dir, NO_COLOR="1")
        command = [args.build + "/rnbd", "--listen", "127.0.0.1:0", "--socket", self.socket, "--threads", str(args.threads),
                   "--model", "m=" + path] + (["--ram", str(budget)] if budget else [])
        for name, other in (others or {}).items():
            command += ["--model", name + "=" + other]
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stderr=log, env=self.env, preexec_fn=cage.enter if cage else None)
        self.sampler = Sampler(self.process.pid, cage, timed)
        for _ in range(200):
            if os.path.exists(self.socket) and self.call("status") is not None:
                break
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def call(self, *words, error=False):
        """The JSON answer; None when it failed.  With error: (answer, what it said)."""
        done = subprocess.run([self.args.build + "/rnbctl", "--json"] + list(words), env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        answer = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None
        return (answer, done.stderr.decode()) if error else answer

    def load(self, ctx=1024, name="m"):
        answer, said = self.call("load", name, "--ctx", str(ctx), error=True)
        if answer is None:
            raise Skipped("rnbd does not load it: " + said.strip())
        return answer

    def cache(self, *more):
        counts = self.call("cache", "m", *more)
        if counts is None:
            raise Skipped("rnbctl cache failed")
        return counts

    def used(self):
        return self.call("memory")["pools"][0]["used"]

    def bench(self, prompt, gen, repeats=1):
        """{"pp": tokens/s, "tg": tokens/s}, of what was asked for."""
        answer, said = self.call("bench", "m", "--prompt", str(prompt), "--gen", str(gen), "--repeats", str(repeats), error=True)
        if answer is None:
            raise Skipped("rnbctl bench failed: " + said.strip())
        return {t["test"]: t["median"] for t in answer["tests"]}

    def sample(self, n, seed):
        """Tokens/s of an answer whose tokens are drawn: a synthetic model's likeliest ones go round in a few, and so do its experts."""
        try:
            with self.complete("On day 1", n, temperature=1, seed=seed) as reply:
                return json.loads(reply.read())["timings"]["tg_per_second"]
        except OSError as e:
            raise Skipped("the daemon does not answer: %s" % e) from e

    def complete(self, prompt, n, **more):
        """The open reply to a request for n tokens; raises what urlopen does."""
        body = {"model": "m", "prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True, **more}
        ask = urllib.request.Request("http://127.0.0.1:%d/v1/completions" % self.call("status")["port"], json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
        return urllib.request.urlopen(ask, timeout=1200)

    def generate(self, prompt, n, each=None):
        """The log probabilities of an answer of at most n tokens with those of the four next best, to the last bit, and the error
        that ended it or None.

        A synthetic model's tokens mostly have no text, so these are the answer.  each(tokens so far) after every token.
        """
        answer = []
        try:
            with self.complete(prompt, n, logprobs=5, stream=True) as reply:
                for line in reply:
                    if not line.startswith(b"data: {"):
                        continue
                    event = json.loads(line[6:])
                    if "error" in event:
                        return answer, event["error"]["message"]
                    for choice in event["choices"]:
                        logprobs = choice.get("logprobs") or {}
                        for chosen, top in zip(logprobs.get("token_logprobs", []), logprobs.get("top_logprobs", [])):
                            answer.append([chosen, sorted(top.items())])
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
        """Peak bytes, and the exit status; a second time the same."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        most = self.sampler.end()
        shutil.rmtree(self.dir, ignore_errors=True)
        return most, status


def read_through(path):
    """Reads a file past the page cache.  The host of a virtual machine may keep what was read lately, and then gives it up to half again
    as fast; what is told of a drive and what is seen of it must meet the same.  A file system without direct I/O has no such past."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, 16 * MIB) as buffer:
                while os.readv(fd, [buffer]) == len(buffer):
                    pass
        finally:
            os.close(fd)


def digest(answer):
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()[:16]


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable:"))
