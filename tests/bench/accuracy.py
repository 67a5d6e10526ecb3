#!/usr/bin/env python3
"""Relative L2 of the logits of each format of weights against the same model decoded to f32.

    accuracy.py --accuracy build/tests/accuracy [--rival path/to/llama-server] [--only REGEX]

Beside --rival, llama.cpp computes the same two files with its defaults, and its own distance stands next to ours; the last
column is how far the two engines are from each other on the f32 model.  Ours is "worse" beyond 5 % more than the rival's (two
ways of rounding differ by that much from prompt to prompt); exit 1 if one is.
"""
import argparse
import array
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

N_PROMPTS, N_IDS, N_VOCAB = 24, 32, 600  # as in accuracy.c
WORSE, NOISE = 1.05, 1e-5


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(port, body):
    request = urllib.request.Request("http://127.0.0.1:%d/completion" % port, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def wait_for(port, process):
    for _ in range(600):
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/health" % port, timeout=5) as answer:
                if answer.status == 200:
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def row_of(answer):
    """Log probabilities of all tokens, less their mean: the logits, less theirs."""
    row = [None] * N_VOCAB
    for token in answer["completion_probabilities"][0]["top_logprobs"]:
        row[token["id"]] = token["logprob"]
    if None in row:
        raise ValueError("the server gave %d of %d probabilities" % (sum(x is not None for x in row), N_VOCAB))
    mean = math.fsum(row) / N_VOCAB
    return [x - mean for x in row]


def rival_logits(binary, model):
    """N_PROMPTS rows, one after the other; None when it does not load the model."""
    port = free_port()
    process = subprocess.Popen([binary, "-m", model, "--host", "127.0.0.1", "--port", str(port), "-t", "2", "-c", "256", "-np", "1",
                                "--no-warmup"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not wait_for(port, process):
            return None
        rows = []
        for p in range(N_PROMPTS):
            ids = [(p * 131 + i * 37 + 11) % N_VOCAB for i in range(N_IDS)]
            # The probabilities are those before any bias; without one an answer that ends at once or within a character has none.
            rows += row_of(post(port, {"prompt": ids, "n_predict": 1, "n_probs": N_VOCAB, "temperature": -1, "cache_prompt": False,
                                       "post_sampling_probs": False, "logit_bias": [[ord("a"), 1000]]}))
        return rows
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def distance(a, b):
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)) / math.fsum(y * y for y in b))


def compare(args, name, ours, folder):
    """True when ours is not worse."""
    quantised, decoded = (rival_logits(args.rival, os.path.join(folder, file + ".gguf")) for file in (name, "f32"))
    if quantised is None or decoded is None:
        print("%-8s ours %.3e  rival does not load it" % (name, ours), flush=True)
        return True
    own = array.array("f", open(os.path.join(folder, "f32.logits"), "rb").read())
    rival = distance(quantised, decoded)
    fine = ours <= rival * WORSE + NOISE
    print("%-8s ours %.3e  rival %.3e  ratio %5.2f  f32 of both %.1e%s"
          % (name, ours, rival, ours / rival if rival else 0, distance(decoded, own), "" if fine else "  WORSE"), flush=True)
    return fine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accuracy", required=True)
    parser.add_argument("--rival")
    parser.add_argument("--only", default="", type=re.compile)
    args = parser.parse_args()
    names = subprocess.run([args.accuracy, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    fine = worse = 0
    for name in filter(args.only.search, names):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(args.accuracy)) as folder:
            ours = float(subprocess.run([args.accuracy, name, folder], stdout=subprocess.PIPE, check=True).stdout)
            if args.rival:
                good = compare(args, name, ours, folder)
                fine, worse = fine + good, worse + (not good)
            else:
                print("%-8s ours %.3e" % (name, ours), flush=True)
    if args.rival:
        print("accuracy: %d not worse, %d worse" % (fine, worse))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
