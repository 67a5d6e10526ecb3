#!/usr/bin/env python3
"""What the online curve says other cache sizes would hit, against what caches of these sizes do hit.

    curve_check.py --build build [--model FILE] [--folder DIR] [--tokens 400] [--out curve.json]

Three traces at three sizes each: one with locality, invented, written to a file in the format that the daemon records and
read back; one nearly uniform, likewise; and one recorded from a model while it answers.  All go through the daemon's own policy
(tests/replay).  For the recorded one also the live daemon: what its curve says of half and of twice its cache, and the hit
rate of the daemon itself when it has a cache of that size and answers the same.  Exit status 1 when one is off by more than 2
points.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from gate_rig import MIB, Rnbd

MODEL = "qwen3moe-30b-a3b+Q4_K_M+layers-4+vocab-8192"
MOST = 2.0


class Checks:
    def __init__(self, args, folder):
        self.args, self.folder, self.rows = args, folder, []

    def add(self, trace, slots, predicted, real):
        row = {"trace": trace, "slots": slots, "predicted": predicted, "real": real, "holds": abs(predicted - real) <= MOST}
        self.rows.append(row)
        print("%-24s %6d slots  predicted %5.1f %%  real %5.1f %%  %s" % (
            trace, slots, predicted, real, "holds" if row["holds"] else "OFF"), flush=True)

    def replay(self, label, *words):
        done = subprocess.run([self.args.build + "/tests/replay"] + list(words), stdout=subprocess.PIPE, check=True)
        for line in done.stdout.decode().splitlines():
            f = line.split()
            if len(f) == 4 and f[0].isdigit():
                self.add(label, int(f[0]), float(f[3]), float(f[1]))

    def invented(self, kind, label):
        path = os.path.join(self.folder, label)
        subprocess.run([self.args.build + "/tests/replay", "--save", path, "--tokens", "3000", kind], check=True)
        self.replay("invented, " + label, "--warm", "1000", path)

    def answer(self, daemon, n_vocab):
        """Hits of decode in an answer, in percent, without its beginning, which fills the cache."""
        chosen, marks = random.Random(3), []
        for n in (60, self.args.tokens):
            with daemon.complete([chosen.randrange(n_vocab) for _ in range(64)], n, temperature=1.0, seed=5) as reply:
                reply.read()
            marks.append(daemon.cache())
        a, b = marks
        return 100 * (b["hits"] - a["hits"]) / (b["uses"] - a["uses"]), b

    def live(self, path):
        """Records a trace; what the curve of this cache says of half and twice, against daemons of these sizes."""
        trace = os.path.join(self.folder, "recorded")
        with Rnbd(self.args, path) as d:
            plan = d.call("plan", "m", "--ctx", "1024")
        budget = (plan["floor"] + (plan["all"] - plan["floor"]) * 3 // 10) // MIB * MIB
        with Rnbd(self.args, path, budget) as d:
            d.load()
            d.call("cache", "m", "--trace", trace)
            here, cache = self.answer(d, plan["n_vocab"])
            points = d.call("cache", "m", "--curve")["curve"]
            d.call("cache", "m", "--trace", "")
        slots = cache["slots"]
        self.replay("recorded", "--staging", "0", "--warm", "60", "--slots", "%d,%d,%d" % (slots // 2, slots, slots * 2), trace)
        for p in points:
            if p["factor"] == 1:
                self.add("live, this cache", p["slots"], 100 * p["hit_rate"], here)
            elif p["factor"] in (0.5, 2):
                other = budget + p["bytes"] - cache["slots_bytes"]
                with Rnbd(self.args, path, int(other)) as d:
                    d.load()
                    real, there = self.answer(d, plan["n_vocab"])
                self.add("live, %g x" % p["factor"], there["slots"], 100 * p["hit_rate"], real)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--model")
    p.add_argument("--folder")
    p.add_argument("--tokens", type=int, default=400)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--out")
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    args.model = args.model or os.path.relpath(args.build + "/models/" + MODEL + ".gguf")
    if not os.path.exists(args.model):
        subprocess.run(["make", "--no-print-directory", args.model], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(args, folder)
        checks.invented("l", "local")
        checks.invented("n", "nearly uniform")
        checks.live(args.model)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(checks.rows, f, indent=1)
            f.write("\n")
    off = sum(not r["holds"] for r in checks.rows)
    print("curve: %d within %g points, %d not" % (len(checks.rows) - off, MOST, off))
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
