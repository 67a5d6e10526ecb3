#!/usr/bin/env python3
"""What `rnbctl plan` says against what happens: bytes of the ledger's peak, and tokens a second.

    plan_check.py --build build [--models FILE]... [--folder DIR] [--combinations 12] [--rounds 3] [--threads 2] [--out plan.json]

Models × budgets × contexts.  A daemon loads the model and answers, which teaches how experts are chosen; then rounds of a plan by
another daemon, for which the machine is measured anew, and of an answer of 32 tokens behind a prompt of 512 (fewer where the
context is short) right behind it: on a shared machine, memory that gives 54 GB/s now gives 32 ten seconds later.  Bytes must be
equal to the last one: the sum of each account of the model, and the ledger's peak, which is the plan's or, where the answer
itself takes more than what only loading needs, that of the plan and the answer.  Speeds: the median of what the rounds' plans
told too much should be within 25 %.  Exit status 1 when bytes differ anywhere.
"""
import argparse
import glob
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from gate_rig import GIB, MIB, Rnbd, Skipped, read_through

DEFAULTS = ("qwen3-0.6b+Q8_0", "qwen3moe-30b-a3b+Q4_K_M+layers-4+vocab-8192")
SHARES = (None, 0.55, 0.2)  # of what lies between the floor and all resident; None: all
CONTEXTS = (1024, 4096)
PROMPT, ANSWER = 512, 32
WITHIN = 0.25
PLANNED = ("weights", "cache", "kv", "state", "text")  # accounts that only the model has


class Checks:
    def __init__(self, args):
        self.args, self.rows = args, []
        self.state = tempfile.mkdtemp(prefix="rnbd-plan-")

    def model(self, name):
        path = os.path.join(self.args.folder, name + ".gguf")
        if not os.path.exists(path):
            subprocess.run(["make", "--no-print-directory", "B=" + self.args.build, path], check=True, stdout=subprocess.DEVNULL)
        return path

    def forget_rates(self):
        for f in glob.glob(self.state + "/kernels.json") + glob.glob(self.state + "/drive-*.json"):
            os.unlink(f)

    @staticmethod
    def ask(daemon, vocab, which):
        """One answer's timings; which: one of a few prompts, so that what was learnt is what is asked.  Tokens are drawn: a synthetic
        model's likeliest ones go round in a few, and what its experts hit is then no more than that."""
        chosen = random.Random(which)
        with daemon.complete([chosen.randrange(vocab // 8, vocab) for _ in range(PROMPT)], ANSWER, temperature=1, seed=which) as reply:
            return json.loads(reply.read())["timings"]

    def plan(self, daemon, ctx):
        plan, said = daemon.call("plan", "m", "--ctx", str(ctx), error=True)
        if plan is None:
            raise Skipped("rnbctl plan failed: " + said.strip())
        return plan

    def plan_anew(self, path, ctx, budget):
        self.forget_rates()
        with Rnbd(self.args, path, budget, state=self.state) as d:
            return self.plan(d, ctx)

    def rounds(self, path, ctx, budget):
        """Plans, the answers behind them, accounts at rest and after all of that."""
        first = self.plan_anew(path, ctx, budget)
        plans, answers = [], []
        if first["n_experts"]:
            with Rnbd(self.args, path, budget, state=self.state) as d:
                d.load(ctx)
                for which in range(2):
                    self.ask(d, first["n_vocab"], which)
                d.call("unload", "m")
        with Rnbd(self.args, path, budget, state=self.state) as d:
            d.load(ctx)
            rest = d.call("memory")["pools"][0]
            self.ask(d, first["n_vocab"], 0)
            for i in range(self.args.rounds):
                read_through(path)
                plans.append(self.plan_anew(path, ctx, budget))
                answers.append(self.ask(d, first["n_vocab"], (i + 1) % 2))  # never that of just now, whose keys are there
            pool = d.call("memory")["pools"][0]
        return plans, answers, rest, pool

    def bytes_differ(self, plan, pool, rest):
        """Sentences; none when the plan was right."""
        got, peaks = ({a["name"]: a[key] for a in rest["accounts"]} for key in ("bytes", "peak"))
        wrong = ["%s %d, planned %d" % (name, got[name], plan["accounts"][name]) for name in PLANNED
                 if got[name] != plan["accounts"][name]]
        if peaks["staging"] != plan["accounts"]["staging"]:
            wrong.append("staging %d, planned %d" % (peaks["staging"], plan["accounts"]["staging"]))
        if rest["used"] != plan["total"]:
            wrong.append("held %d, planned %d" % (rest["used"], plan["total"]))
        if rest["peak"] != plan["peak"]:
            wrong.append("peak %d, planned %d" % (rest["peak"], plan["peak"]))
        most = {a["name"]: a["peak"] for a in pool["accounts"]}
        answer = most["requests"] + most["scratch"] - plan["accounts"]["scratch"]
        if pool["peak"] > max(plan["peak"], plan["total"] + answer):
            wrong.append("peak with an answer %d, planned %d, or %d and the answer's %d" % (
                pool["peak"], plan["peak"], plan["total"], answer))
        if plan["accounts"]["scratch"] != {a["name"]: a["bytes"] for a in pool["accounts"]}["scratch"]:
            wrong.append("scratch %d, planned %d" % (most["scratch"], plan["accounts"]["scratch"]))
        return wrong

    def combination(self, path, ctx, share):
        name = os.path.splitext(os.path.basename(path))[0]
        with Rnbd(self.args, path, state=self.state) as d:
            whole = self.plan(d, ctx)
        budget = None
        if share is not None:
            budget = int(whole["floor"] + (whole["all"] - whole["floor"]) * share) // MIB * MIB
        plans, answers, rest, pool = self.rounds(path, ctx, budget)
        wrong = [w for plan in plans for w in self.bytes_differ(plan, pool, rest)]
        row = {"model": name, "ctx": ctx, "budget": budget, "mode": plans[0]["mode"], "peak": plans[0]["peak"],
               "bytes": "equal" if not wrong else wrong[0]}
        for side, key in (("decode", "tg"), ("prefill", "pp")):
            told = [p["speed"][side]["tokens_per_second"] for p in plans if p["speed"][side]]
            real = [a[key + "_per_second"] for a in answers]
            if len(told) < len(real):
                raise Skipped(plans[-1]["speed"]["why"] or "no speed was told")
            row[key + "_told"], row[key + "_real"] = statistics.median(told), statistics.median(real)
            row[key + "_offs"] = [t / r - 1 for t, r in zip(told, real)]
            row[key + "_off"] = statistics.median(row[key + "_offs"])
            row[key + "_limit"] = plans[-1]["speed"][side]["limit"]
        row["hits_told"] = plans[-1]["speed"].get("hit_rate")
        row["hits_from"] = plans[-1]["speed"].get("hit_rate_from")
        row["hits_real"] = answers[-1]["hit_rate"]
        self.rows.append(row)
        self.show(row)

    @staticmethod
    def show(r):
        def side(key):
            return "%s %8.2f told %8.2f real %+4.0f %%%s (%s)" % (
                key, r[key + "_told"], r[key + "_real"], 100 * r[key + "_off"], " " if abs(r[key + "_off"]) <= WITHIN else "!", r[key + "_limit"])

        hits = "" if r["hits_told"] is None else "  hits %.2f told (%s) %s real" % (
            r["hits_told"], r["hits_from"], "-" if r["hits_real"] is None else "%.2f" % r["hits_real"])
        print("%-28s ctx %5d %9s %-7s %s  %s%s  bytes %s" % (
            r["model"][:28], r["ctx"], "all" if r["budget"] is None else "%.2f GiB" % (r["budget"] / GIB), r["mode"], side("tg"), side("pp"),
            hits, r["bytes"]), flush=True)

    def run(self):
        models = self.args.models or [self.model(m) for m in DEFAULTS]
        # round by round, each model in another setting
        settings, n = [(c, s) for s in SHARES for c in CONTEXTS], len(models)
        chosen = [(models[k % n],) + settings[(k // n + k % n) % len(settings)]
                  for k in range(min(self.args.combinations, n * len(settings)))]
        for path, ctx, share in chosen:
            try:
                self.combination(path, ctx, share)
            except Skipped as why:
                self.rows.append({"model": os.path.basename(path), "ctx": ctx, "share": share, "skipped": str(why)})
                print("%-28s ctx %5d skipped: %s" % (os.path.basename(path), ctx, why), flush=True)
        shutil.rmtree(self.state, ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--models", action="append", default=[])
    p.add_argument("--folder")
    p.add_argument("--combinations", type=int, default=12)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--out")
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    args.folder = args.folder or os.path.relpath(args.build + "/models")
    checks = Checks(args)
    checks.run()
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(checks.rows, f, indent=1)
            f.write("\n")
    done = [r for r in checks.rows if "skipped" not in r]
    wrong = [r for r in done if r["bytes"] != "equal"]
    print("plan: %d combinations, %d skipped; bytes equal in %d; within 25 %%: decode %d, prefill %d" % (
        len(checks.rows), len(checks.rows) - len(done), len(done) - len(wrong), sum(abs(r["tg_off"]) <= WITHIN for r in done),
        sum(abs(r["pp_off"]) <= WITHIN for r in done)))
    sys.exit(1 if wrong or not done else 0)


if __name__ == "__main__":
    main()
