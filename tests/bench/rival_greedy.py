#!/usr/bin/env python3
"""Greedy continuations of rnbd beside llama.cpp's on the same ids.

    rival_greedy.py --rnbctl build/rnbctl --rnbd build/rnbd --rival path/to/llama-server --model FILE [--tokens 64]

Both engines get the same ids of 8 prompts and continue greedily.  Where they part, both gaps between the best and the
second token are printed, beside the noise of llama.cpp against itself: the largest change of a log probability, at that
position, between its default way and two others (no flash attention and no repack; one token at a time).  A parting is
"noise" when either gap is below twice that noise.  Prints a line a prompt and "N equal, N noise, N different"; exit 1 if one differs.
"""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

LONG = " ".join(
    "On day %d the keeper of the lighthouse wrote that the wind came from the %s, that %d ships passed, and that the lamp "
    "burned %d litres of oil." % (d, ["north", "east", "south", "west"][d % 4], d * 7 % 13, 3 + d % 5) for d in range(1, 46))
PROMPTS = [
    "What is the capital of France?",
    "Explain in two sentences why the sky is blue.",
    "한국의 수도는 어디인가요? 한 문장으로 답해 주세요.",
    "대한민국의 사계절에 대해 짧게 설명해 주세요.",
    "Write a Python function that returns the n-th Fibonacci number.",
    "int main(void) {\n    for (int i = 0; i < 10; i++) {",
    "Translate to German: The house is small but it has a large garden.",
    LONG + "\n\nSummarise the log above in one sentence.",
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(port, path, body, timeout=600):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def wait_for(port, path):
    for _ in range(600):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("no answer on port %d" % port)


class Rival:
    def __init__(self, binary, model, extra):
        self.port = free_port()
        self.process = subprocess.Popen([binary, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-t", "2", "-c",
                                         "8192", "-np", "1", "--no-warmup"] + extra,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port, "/health")

    def next_tokens(self, ids, n, top):
        """[(id, {id: logprob})] of n greedy tokens."""
        answer = post(self.port, "/completion", {"prompt": ids, "n_predict": n, "temperature": 0, "top_k": 1, "n_probs": top,
                                                 "cache_prompt": True, "post_sampling_probs": False, "return_tokens": True})
        return [(p["id"], {t["id"]: t["logprob"] for t in p["top_logprobs"]}) for p in answer["completion_probabilities"]]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Rnbd:
    def __init__(self, rnbd, rnbctl, model):
        self.dir = tempfile.TemporaryDirectory()
        self.env = dict(os.environ, RNBD_SOCKET=os.path.join(self.dir.name, "c.sock"))
        self.port = free_port()
        self.process = subprocess.Popen([rnbd, "--listen", "127.0.0.1:%d" % self.port, "--socket", self.env["RNBD_SOCKET"],
                                         "--threads", "2", "--model", "m=" + model], stderr=subprocess.DEVNULL)
        wait_for(self.port, "/health")
        subprocess.run([rnbctl, "load", "m"], env=self.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def next_tokens(self, ids, n, top):
        """[(text, [(text, logprob)])] of n greedy tokens."""
        answer = post(self.port, "/v1/completions", {"model": "m", "prompt": ids, "max_tokens": n, "temperature": 0,
                                                     "logprobs": top})
        logs = answer["choices"][0]["logprobs"]
        return [(t, sorted(p.items(), key=lambda x: -x[1])) for t, p in zip(logs["tokens"], logs["top_logprobs"])]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def gap(values):
    best = sorted(values, reverse=True)
    return best[0] - best[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rnbd", required=True)
    parser.add_argument("--rnbctl", required=True)
    parser.add_argument("--rival", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    rival = Rival(args.rival, args.model, [])
    others = [Rival(args.rival, args.model, ["-fa", "off", "--no-repack"]), Rival(args.rival, args.model, ["-b", "1", "-ub", "1"])]
    ours = Rnbd(args.rnbd, args.rnbctl, args.model)
    equal = noise_only = different = 0
    for number, prompt in enumerate(PROMPTS):
        messages = [{"role": "user", "content": prompt}]
        rendered = post(rival.port, "/apply-template", {"messages": messages})["prompt"]
        ids = post(rival.port, "/tokenize", {"content": rendered, "add_special": True, "parse_special": True})["tokens"]
        theirs = rival.next_tokens(ids, args.tokens, 10)
        mine = ours.next_tokens(ids, args.tokens, 10)
        pieces = [post(rival.port, "/detokenize", {"tokens": [t]})["content"] for t, _ in theirs]
        at = next((i for i, (a, (b, _)) in enumerate(zip(pieces, mine)) if a != b), min(len(pieces), len(mine)))
        if at == min(len(pieces), len(mine)):
            equal += 1
            print("prompt %d (%d ids): equal, %d tokens" % (number, len(ids), at))
            continue
        so_far = ids + [t for t, _ in theirs[:at]]
        reference = theirs[at][1]
        noise = 0.0
        for other in others:
            seen = other.next_tokens(so_far, 1, 10)[0][1]
            noise = max([noise] + [abs(seen[t] - p) for t, p in reference.items() if t in seen and p > -8])
        gaps = gap(reference.values()), gap(p for _, p in mine[at][1])
        verdict = "noise" if min(gaps) < 2 * noise else "DIFFERENT"
        noise_only += verdict == "noise"
        different += verdict != "noise"
        print("prompt %d (%d ids): parts at token %d (%r, ours %r): gap %.4f, ours %.4f; llama.cpp against itself %.4f: %s"
              % (number, len(ids), at, pieces[at], mine[at][0], gaps[0], gaps[1], noise, verdict), flush=True)
    for engine in [rival, ours] + others:
        engine.stop()
    print("%d equal, %d noise, %d different" % (equal, noise_only, different))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
