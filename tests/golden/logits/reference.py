#!/usr/bin/env python3
"""Logits of the tiny models in double precision, written from the papers alone.

    build/tests/check_logits --save DIR         # the models as files, f32
    reference.py DIR/*.gguf                      # writes NAME.txt beside this script

Needs numpy.  Shares nothing with the program it checks: own reader, own arithmetic.
A line of the output: position, then the logits of every fifth id.
"""
import os
import struct
import sys

import numpy as np

PROMPT = [(i * 37 + 11) % 320 for i in range(40)]
POSITIONS = (0, 20, 39)
STEP = 5


class File:
    """The parts of a GGUF file that these models use."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.at = 24
        _, n_tensors, n_values = struct.unpack_from("<IQQ", self.data, 4)
        self.keys = dict(self.pair() for _ in range(n_values))
        infos = [self.info() for _ in range(n_tensors)]
        start = (self.at + 31) // 32 * 32
        self.tensors = {name: self.values(start, *rest) for name, *rest in infos}

    def take(self, fmt):
        values = struct.unpack_from("<" + fmt, self.data, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values

    def string(self):
        (n,) = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            elem, n = self.take("IQ")
            return [self.value(elem) for _ in range(n)]
        return self.take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])[0]

    def pair(self):
        key = self.string()
        (kind,) = self.take("I")
        return key, self.value(kind)

    def info(self):
        name = self.string()
        (n_dims,) = self.take("I")
        dims = self.take("%dQ" % n_dims)
        kind, offset = self.take("IQ")
        assert kind == 0, "%s is not f32" % name
        return name, dims, offset

    def values(self, start, dims, offset):
        n = int(np.prod(dims))
        flat = np.frombuffer(self.data, "<f4", n, start + offset)
        return flat.astype(np.float64).reshape(dims[::-1])


class Model:
    def __init__(self, path):
        f = File(path)
        self.arch = f.keys["general.architecture"]
        self.t = f.tensors
        self.keys = {k.split(".", 1)[1]: v for k, v in f.keys.items() if k.startswith(self.arch + ".")}
        self.heads = self.keys["attention.head_count"]
        self.kv_heads = self.keys["attention.head_count_kv"]
        self.dim = self.keys["attention.key_length"]

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.keys["attention.layer_norm_rms_epsilon"]) * weight

    def rotate(self, x):
        """x: [position][head][dim].  llama turns neighbours, qwen turns the halves."""
        half = self.dim // 2
        angle = np.arange(x.shape[0])[:, None] * self.keys["rope.freq_base"] ** (-np.arange(half) / half)
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        y = np.empty_like(x)
        a, b = (slice(0, None, 2), slice(1, None, 2)) if self.arch == "llama" else (slice(0, half), slice(half, None))
        y[..., a] = x[..., a] * c - x[..., b] * s
        y[..., b] = x[..., a] * s + x[..., b] * c
        return y

    def project(self, i, name, x):
        y = x @ self.t["blk.%d.%s.weight" % (i, name)].T
        bias = self.t.get("blk.%d.%s.bias" % (i, name))
        return y if bias is None else y + bias

    def attention(self, i, x):
        n = x.shape[0]
        q = self.project(i, "attn_q", x).reshape(n, self.heads, self.dim)
        k = self.project(i, "attn_k", x).reshape(n, self.kv_heads, self.dim)
        v = self.project(i, "attn_v", x).reshape(n, self.kv_heads, self.dim)
        if "blk.%d.attn_q_norm.weight" % i in self.t:
            q = self.norm(q, self.t["blk.%d.attn_q_norm.weight" % i])
            k = self.norm(k, self.t["blk.%d.attn_k_norm.weight" % i])
        q, k = self.rotate(q), self.rotate(k)
        out = np.empty_like(q)
        for h in range(self.heads):
            g = h * self.kv_heads // self.heads
            score = q[:, h] @ k[:, g].T / np.sqrt(self.dim)
            score[np.triu_indices(n, 1)] = -np.inf
            p = np.exp(score - score.max(-1, keepdims=True))
            out[:, h] = p / p.sum(-1, keepdims=True) @ v[:, g]
        return self.project(i, "attn_output", out.reshape(n, -1))

    @staticmethod
    def swiglu(x, gate, up, down):
        g = x @ gate.T
        return (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T

    def experts(self, i, x):
        w = [self.t["blk.%d.ffn_%s_exps.weight" % (i, n)] for n in ("gate", "up", "down")]
        logits = x @ self.t["blk.%d.ffn_gate_inp.weight" % i].T
        p = np.exp(logits - logits.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        y = np.zeros_like(x)
        for r in range(x.shape[0]):
            chosen = np.argsort(-p[r], kind="stable")[:self.keys["expert_used_count"]]
            share = p[r][chosen]
            if self.arch != "qwen2moe":
                share = share / share.sum()
            for e, s in zip(chosen, share):
                y[r] += s * self.swiglu(x[r], w[0][e], w[1][e], w[2][e])
        if "blk.%d.ffn_gate_inp_shexp.weight" % i in self.t:
            w = [self.t["blk.%d.ffn_%s_shexp.weight" % (i, n)] for n in ("gate", "up", "down")]
            gate = x @ self.t["blk.%d.ffn_gate_inp_shexp.weight" % i]
            y += self.swiglu(x, *w) / (1 + np.exp(-gate))[:, None]
        return y

    def logits(self, ids):
        x = self.t["token_embd.weight"][ids]
        for i in range(self.keys["block_count"]):
            x = x + self.attention(i, self.norm(x, self.t["blk.%d.attn_norm.weight" % i]))
            h = self.norm(x, self.t["blk.%d.ffn_norm.weight" % i])
            if "blk.%d.ffn_gate_inp.weight" % i in self.t:
                x = x + self.experts(i, h)
            else:
                x = x + self.swiglu(h, *(self.t["blk.%d.ffn_%s.weight" % (i, n)] for n in ("gate", "up", "down")))
        x = self.norm(x, self.t["output_norm.weight"])
        return x @ self.t["output.weight"].T


def main():
    for path in sys.argv[1:]:
        name = os.path.splitext(os.path.basename(path))[0]
        logits = Model(path).logits(PROMPT)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".txt"), "w") as out:
            for pos in POSITIONS:
                print(pos, *("%.7g" % v for v in logits[pos][::STEP]), file=out)


main()
