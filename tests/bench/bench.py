#!/usr/bin/env python3
"""What rnbd does with this machine, and how it stands beside llama.cpp: see `make bench` in rules.mk.

    bench.py --build build [--rival path/to/llama-bench] [--out bench.json] [--csv bench.csv] [--only REGEX] [--rounds 5]
             [--deep-rounds 1] [--threads 2] [--make make]

Three parts, each printed as it comes:
  kernels   every kernel and tier: ns, GB/s, Gop/s, share of what the same process measures of the machine
  shares    a model's decode beside a plain read loop over the same bytes, its prefill beside the int8 peak; 1 and all threads
  models    prefill 512 and decode 64 at depths 0, 2048, 8192, with the targets; beside --rival when it is named, alternating

--only picks rows by name: a kernel ("gemm_q4_k_avx512"), "shares", or a model with its depth ("qwen3-0.6b Q8_0 @0").
--out gets the models as a list of {model, test, depth, threads, ours, rival, ratio, spread, target}; --csv all figures, one a
line, with the commit: append files of several commits and compare.  Models are generated under the build folder.
"""
import argparse
import csv
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import rival_bench  # noqa: E402

# Name, file below models/, depth, least ratio of prefill and of decode that is aimed at (None: no aim of its own).
MODELS = [
    ("qwen3-0.6b Q4_K_M", "qwen3-0.6b+Q4_K_M.gguf", 0, 3.0, 1.12),
    ("qwen3-0.6b Q8_0", "qwen3-0.6b+Q8_0.gguf", 0, 3.0, 1.15),
    ("qwen3-0.6b Q6_K", "qwen3-0.6b+Q6_K.gguf", 0, 4.0, 1.15),
    ("qwen3-0.6b IQ4_XS", "qwen3-0.6b+IQ4_XS.gguf", 0, 2.0, 1.4),
    ("smol-135m Q4_K_M", "smol-135m+Q4_K_M.gguf", 0, 2.5, 1.25),
    ("SmolLM2 Q4_1", "SmolLM2-135M-Instruct.Q4_1.gguf", 0, 2.5, 1.25),
    ("qwen3moe-30b-a3b Q4_K_M 8 layers", "qwen3moe-30b-a3b+Q4_K_M+layers-8+vocab-8192.gguf", 0, 3.0, 1.15),
    ("qwen35moe-35b-a3b Q4_K_M 4 layers", "qwen35moe-35b-a3b+Q4_K_M+layers-4+vocab-8192.gguf", 0, None, None),
    ("gpt-oss-20b MXFP4 4 layers", "gpt-oss-20b+MXFP4+layers-4+vocab-4096.gguf", 0, 5.0, 1.6),
    ("qwen3-0.6b Q4_K_M", "qwen3-0.6b+Q4_K_M.gguf", 2048, None, None),
    ("qwen3-0.6b Q4_K_M", "qwen3-0.6b+Q4_K_M.gguf", 8192, 2.5, 1.3),
]
SHARES_MODEL = "qwen3-0.6b+Q4_K_M.gguf"
SHARES_TARGETS = {("decode's matrices", 1): 0.85, ("decode's matrices", 2): 0.92, ("decode", 2): 0.88,
                  ("prefill's q4_k matrices", 1): 0.70, ("prefill 512", 1): 0.55}

KERNEL_LINE = re.compile(r"(?P<name>\w+)(?: cols (?P<cols>\d+))?: (?P<ns>\d+) ns")
FIGURES = [("GB/s", re.compile(r"([\d.]+) GB/s")), ("Gop/s", re.compile(r"([\d.]+) Gop/s")),
           ("share", re.compile(r"([\d.]+) % of"))]
CSV_HEAD = ["commit", "part", "name", "test", "depth", "threads", "value", "unit", "share", "spread"]


class Figures:
    """All figures of a run, for the CSV."""

    def __init__(self):
        self.rows = []
        done = subprocess.run(["git", "describe", "--always", "--dirty"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.commit = done.stdout.decode().strip() or "unknown"

    def add(self, part, name, test, depth, threads, value, unit, share="", spread=""):
        self.rows.append([self.commit, part, name, test, depth, threads, value, unit, share, spread])

    def write(self, path):
        with open(path, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow(CSV_HEAD)
            out.writerows(self.rows)


# -- kernels -------------------------------------------------------------------------------------


def kernel_names(build):
    rows = re.findall(r"ROW\((\w+), (\w+), (\w+)\)", open(os.path.join(build, "gen/kernels.def"), encoding="utf-8").read())
    return ["%s_%s_%s" % row for row in rows]


def print_kernel(line, figures):
    found = KERNEL_LINE.match(line)
    if not found:
        print(line, flush=True)
        return
    seen = {unit: pattern.search(line, found.end()) for unit, pattern in FIGURES}
    text = {unit: m.group(1) if m else "" for unit, m in seen.items()}
    test = "cols %s" % found["cols"] if found["cols"] else ""
    print("%-28s %-9s %12s ns %8s GB/s %8s Gop/s %4s %s" % (found["name"], test, found["ns"], text["GB/s"], text["Gop/s"],
                                                            text["share"], "%" if text["share"] else ""), flush=True)
    share = float(text["share"]) / 100 if text["share"] else ""
    figures.add("kernels", found["name"], test, "", 1, int(found["ns"]), "ns", share)


def bench_kernels(args, figures):
    names = [n for n in kernel_names(args.build) if args.only.search(n)]
    if not names:
        return
    print("kernels, one thread; share: matvec of a read loop, gemm of the int8 (f32 weights: fma) peak", flush=True)
    whole = len(names) == len(kernel_names(args.build))
    for only in [None] if whole else names:
        command = [os.path.join(args.build, "tests/check_kernels"), "--bench"] + (["--only", only] if only else [])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if whole or only in line.split():
                    print_kernel(line.rstrip(), figures)


# -- shares of the machine ---------------------------------------------------------------------------


def bench_shares(args, figures):
    if not args.only.search("shares"):
        return
    model, out = make_model(args, SHARES_MODEL), os.path.join(args.build, "shares.json")
    print("\nshares of the machine, " + SHARES_MODEL, flush=True)
    for threads in sorted({1, args.threads}):
        subprocess.run([os.path.join(args.build, "tests/shares"), "--threads", str(threads), "--rounds", str(args.rounds),
                        "--json", out, model] + (["--own-time"] if args.own_time else []), check=True,
                       stdout=subprocess.DEVNULL)
        for row in json.load(open(out, encoding="utf-8")):
            target = SHARES_TARGETS.get((row["what"], threads))
            aim = "" if target is None else "aim %3.0f %%  %s" % (100 * target, "met" if row["share"] >= target else "MISSED")
            print("%-26s %d threads %9.1f %-6s %5.1f %% of %-14s spread %4.1f %%  %s"
                  % (row["what"], threads, row["rate"], row["unit"], 100 * row["share"], row["of"], 100 * row["spread"], aim),
                  flush=True)
            figures.add("shares", SHARES_MODEL, row["what"], 0, threads, row["rate"], row["unit"], row["share"], row["spread"])
    os.unlink(out)


# -- models ------------------------------------------------------------------------------------------


def make_model(args, name):
    """The path; None for a real model that is not there."""
    path = os.path.join(args.build, "models", name)
    if "+" not in name:
        return path if os.path.exists(path) else None
    if not os.path.exists(path):
        subprocess.run(args.make.split() + ["--no-print-directory", path], check=True, stdout=subprocess.DEVNULL)
    return path


def bench_models(args, figures):
    rows, picked = [], [m for m in MODELS if args.only.search("%s @%d" % (m[0], m[2]))]
    if picked:
        print("\nprefill 512 and decode 64, tokens a second, %d threads, medians of %d rounds (%d at a depth)%s"
              % (args.threads, args.rounds, args.deep_rounds, "" if args.rival else "; no --rival named"), flush=True)
    for name, file, depth, *targets in picked:
        model = make_model(args, file)
        if not model:
            print("%-34s skipped: %s is not there (make demo fetches it)" % (name, file), flush=True)
            continue
        run = argparse.Namespace(rnbd=os.path.join(args.build, "rnbd"), rnbctl=os.path.join(args.build, "rnbctl"),
                                 rival=args.rival, prompt=512, gen=64, depth=depth, threads=args.threads,
                                 rounds=args.deep_rounds if depth else args.rounds)
        try:
            rows += rival_bench.bench(run, model, name, dict(zip(("pp", "tg"), targets)))
        except rival_bench.Refused as why:
            print("%-34s skipped: %s" % (name, why), flush=True)
    for row in rows:
        figures.add("models", row["model"], row["test"], row["depth"], row["threads"], row["ours"], "t/s",
                    row["ratio"] or "", row["spread"][0])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rival")
    parser.add_argument("--out")
    parser.add_argument("--csv")
    parser.add_argument("--only", default="", type=re.compile)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deep-rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--own-time", action="store_true", help="shares by the threads' processor time: for a busy machine")
    parser.add_argument("--make", default="make")
    args = parser.parse_args()
    figures = Figures()
    bench_kernels(args, figures)
    bench_shares(args, figures)
    rows = bench_models(args, figures)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=2)
    figures.write(args.csv or os.path.join(args.build, "bench.csv"))


if __name__ == "__main__":
    main()
