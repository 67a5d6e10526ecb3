#!/usr/bin/env python3
"""Prefill and decode beside llama.cpp, in one run, alternating.

    rival_bench.py --rnbd build/rnbd --rnbctl build/rnbctl [--rival path/to/llama-bench] [--prompt 512] [--gen 64]
                   [--rounds 5] [--threads 2] [--depth 0] [--out FILE] MODEL...

Each round runs one engine after the other on the same model, rnbd loaded beforehand.  llama.cpp runs with its defaults, with and
without flash attention, and its better median counts.  Prints medians, ratios and spreads; --out writes them as JSON.
"""
import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time


class Refused(Exception):
    """rnbd does not load the model; the sentence says why."""


class Rnbd:
    def __init__(self, args, model):
        self.args = args
        self.dir = tempfile.TemporaryDirectory()
        self.env = dict(os.environ, RNBD_SOCKET=os.path.join(self.dir.name, "c.sock"))
        self.process = subprocess.Popen([args.rnbd, "--listen", "127.0.0.1:0", "--socket", self.env["RNBD_SOCKET"], "--threads",
                                         str(args.threads), "--model", "m=" + model], stderr=subprocess.DEVNULL)
        for _ in range(100):
            if self.call("status") is not None:
                break
            time.sleep(0.1)
        ctx = max(2048, args.depth + args.prompt + args.gen + 64)
        if self.call("load", "m", "--ctx", str(ctx)) is None:
            self.stop()
            raise Refused(self.error)

    def call(self, *words):
        done = subprocess.run([self.args.rnbctl, "--json"] + list(words), env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.error = done.stderr.decode().strip()
        return json.loads(done.stdout) if done.returncode == 0 else None

    def round(self):
        answer = self.call("bench", "m", "--prompt", str(self.args.prompt), "--gen", str(self.args.gen), "--depth",
                           str(self.args.depth), "--repeats", "1")
        return {t["test"]: t["median"] for t in answer["tests"]}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def rival_round(args, model, flash):
    done = subprocess.run([args.rival, "-m", model, "-p", str(args.prompt), "-n", str(args.gen), "-d", str(args.depth), "-t",
                           str(args.threads), "-r", "1", "-fa", flash, "-o", "json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return {"pp" if r["n_prompt"] else "tg": r["avg_ts"] for r in json.loads(done.stdout)}


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def compare(args, name, test, mine, rival, target):
    row = {"model": name, "test": "%s%d" % (test, args.prompt if test == "pp" else args.gen), "depth": args.depth,
           "threads": args.threads, "ours": round(statistics.median(mine), 2), "rival": None, "ratio": None,
           "spread": [round(spread(mine), 3), None], "target": target}
    text = "%-34s %-6s depth %-5d ours %9.2f" % (name, row["test"], args.depth, row["ours"])
    if rival:
        row["rival"] = round(statistics.median(rival), 2)
        row["ratio"] = round(statistics.median(mine) / statistics.median(rival), 3)
        row["spread"][1] = round(spread(rival), 3)
        text += "  rival %9.2f  ratio %6.3f" % (row["rival"], row["ratio"])
    text += "  spread " + " ".join("%.0f%%" % (100 * x) for x in row["spread"] if x is not None)
    if rival and target:
        text += "  aim %.2f  %s" % (target, "met" if row["ratio"] >= target else "MISSED")
    print(text, flush=True)
    return row


def bench(args, model, name=None, targets=None):
    """Rows of the model, prefill and decode; targets: least ratios by "pp" and "tg"."""
    ours, theirs = [], {"0": [], "1": []} if args.rival else {}
    rnbd = Rnbd(args, model)
    rnbd.round()
    for _ in range(args.rounds):
        ours.append(rnbd.round())
        for flash in theirs:
            theirs[flash].append(rival_round(args, model, flash))
    rnbd.stop()
    rows = []
    for test in ("pp", "tg"):
        rival = max(([r[test] for r in rounds] for rounds in theirs.values()), key=statistics.median, default=None)
        rows.append(compare(args, name or os.path.basename(model), test, [r[test] for r in ours], rival,
                            (targets or {}).get(test)))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rnbd", required=True)
    parser.add_argument("--rnbctl", required=True)
    parser.add_argument("--rival")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=64)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    rows = [row for model in args.models for row in bench(args, model)]
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=2)


if __name__ == "__main__":
    main()
