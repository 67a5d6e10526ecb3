#!/usr/bin/env python3
"""Greedy continuations of rnbd beside llama.cpp's on the same ids.

    rival_greedy.py --rnbctl build/rnbctl --rnbd build/rnbd --rival path/to/llama-server --model FILE [--tokens 64]

Both engines get the same ids of 8 prompts and continue greedily.  Where they part, both gaps between the best and the
second token are printed, beside the noise of llama.cpp against itself: the largest change of a log probability, at that
position, between its default way and two others (no flash attention and no repack; small batches).  A parting is
"noise" when either gap is below twice that noise.  Prints a line a prompt and "N equal, N noise, N different"; exit 1 if one differs.
"""
import argparse
import atexit
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
        atexit.register(self.stop)
        wait_for(self.port, "/health")

    def next_tokens(self, ids, n, top):
        """(ids, {position: {id: logprob}}) of n greedy tokens.  The server keeps no probabilities of a token that ends within a
        character, so such positions are missing."""
        answer = post(self.port, "/completion", {"prompt": ids, "n_predict": n, "temperature": 0, "top_k": 1, "n_probs": top,
                                                 "cache_prompt": True, "post_sampling_probs": False, "return_tokens": True})
        known, at = {}, 0
        for p in answer["completion_probabilities"]:
            while answer["tokens"][at] != p["id"]:
                at += 1
            known[at] = {t["id"]: t["logprob"] for t in p["top_logprobs"]}
            at += 1
        return answer["tokens"], known

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
        atexit.register(self.stop)
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


def self_noise(ids, tokens, known, others):
    """The largest change of a log probability between the rival's ways, over a few positions of its own continuation."""
    noise = 0.0
    for at in sorted(known)[:12]:
        for other in others:
            seen = other.next_tokens(ids + tokens[:at], 1, 10)[1].get(0, {})
            noise = max([noise] + [abs(seen[t] - p) for t, p in known[at].items() if t in seen and p > -8])
    return noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rnbd", required=True)
    parser.add_argument("--rnbctl", required=True)
    parser.add_argument("--rival", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    rival = Rival(args.rival, args.model, [])
    others = [Rival(args.rival, args.model, ["-fa", "off", "--no-repack"]), Rival(args.rival, args.model, ["-b", "64", "-ub", "8", "-fa", "off"])]
    ours = Rnbd(args.rnbd, args.rnbctl, args.model)
    equal, parted, noise = 0, [], 0.0
    for number, prompt in enumerate(PROMPTS):
        messages = [{"role": "user", "content": prompt}]
        rendered = post(rival.port, "/apply-template", {"messages": messages})["prompt"]
        ids = post(rival.port, "/tokenize", {"content": rendered, "add_special": True, "parse_special": True})["tokens"]
        tokens, known = rival.next_tokens(ids, args.tokens, 10)
        mine = ours.next_tokens(ids, args.tokens, 10)
        pieces = [post(rival.port, "/detokenize", {"tokens": [t]})["content"] for t in tokens]
        shared = min(len(pieces), len(mine))
        at = next((i for i in range(shared) if pieces[i] != mine[i][0]), shared)
        noise = max(noise, self_noise(ids, tokens, known, others))
        if at == shared:
            equal += 1
            print("prompt %d (%d ids): equal, %d tokens" % (number, len(ids), at), flush=True)
        else:
            parted.append((number, len(ids), at, pieces[at], mine[at][0], gap(known[at].values()) if at in known else None,
                           gap(p for _, p in mine[at][1])))
    noise_only = different = 0
    for number, n, at, piece, own, their_gap, own_gap in parted:
        is_noise = min(g for g in (their_gap, own_gap) if g is not None) < 2 * noise
        noise_only += is_noise
        different += not is_noise
        print("prompt %d (%d ids): parts at token %d (%r, ours %r): gap %s, ours %.4f: %s"
              % (number, n, at, piece, own, "unknown" if their_gap is None else "%.4f" % their_gap, own_gap,
                 "noise" if is_noise else "DIFFERENT"))
    print("llama.cpp against itself: %.4f" % noise)
    print("%d equal, %d noise, %d different" % (equal, noise_only, different))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
