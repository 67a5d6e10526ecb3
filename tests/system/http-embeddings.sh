#!/bin/bash
# Embeddings: texts and ids, one and many, both encodings, and all that is refused.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model embed="$EMBED" --model tiny="$TINY"
py <<'P'
import base64
import math
import struct

def embed(value, **more):
    return http("POST", "/v1/embeddings", {"model": "embed", "input": value, **more})

rpc("model.load", target="embed")
before = used()
one = embed("hello").json
check(one["object"] == "list" and one["model"] == "embed", "the head", one)
check(one["usage"]["prompt_tokens"] == one["usage"]["total_tokens"] > 0, "usage", one["usage"])
v = one["data"][0]["embedding"]
check(len(v) == 256 and abs(math.hypot(*v) - 1) < 1e-5, "a vector of length 1", len(v), math.hypot(*v))
many = embed(["hello", "other", "hello"]).json["data"]
check([d["index"] for d in many] == [0, 1, 2], "in their order")
check(many[0]["embedding"] == v == many[2]["embedding"] != many[1]["embedding"], "the same text, the same vector, alone or not")
raw = embed("hello", encoding_format="base64").json["data"][0]["embedding"]
check(base64.b64decode(raw) == struct.pack("<256f", *v), "base64 holds the same floats")
ids = [104, 101, 108]
check(embed(ids).json["data"][0]["embedding"] == embed([ids]).json["data"][0]["embedding"], "ids, alone or in a list")
check(embed("x" * 500).status == 200, "a text nearly as long as the context")
for value, status, word in [("", 400, "input"), ([], 400, "input"), (["a", ""], 400, "input"), ([[]], 400, "input"), (5, 400, "input"),
                            ([1, "a"], 400, "input"), (["a", None], 400, "input"), ([100000], 400, "token 0"),
                            ("y" * 2000, 413, "512"), (["a"] * 2049, 400, "2048")]:
    a = embed(value)
    check(a.status == status and word in a.error["message"] and a.error["param"] == "input", "refused with a word", str(value)[:40],
          a.status, a.body)
for field, value, status in [("dimensions", 64, 422), ("encoding_format", "hex", 400), ("temperature", 1, 400), ("nonsense", 1, 400)]:
    a = embed("x", **{field: value})
    check(a.status == status and a.error["param"] == field, "a field is refused by name", field, a.status, a.body)
check(embed("x", user="u", keep_alive="5m", encoding_format=None).status == 200, "fields that are known")
a = http("POST", "/v1/embeddings", {"model": "tiny", "input": "x"})
check(a.status == 422 and "no embeddings" in a.error["message"], "a model that writes text", a.body)
a = http("POST", "/v1/chat/completions", chat_body(model="embed"))
check(a.status == 422 and "/v1/embeddings" in a.error["message"], "an embedding model in a chat", a.body)
a = http("POST", "/v1/embeddings", {"model": "nobody", "input": "x"})
check(a.status == 404, "an unknown model", a.body)
# Whoever leaves leaves nothing behind.
for _ in range(10):
    with connect() as s:
        s.sendall(raw_request({"model": "embed", "input": ["word " * 60] * 500}, "/v1/embeddings"))
        time.sleep(0.02)
wait_for("the end of the work", idle)
rpc("model.unload", name="tiny")
check(used() == before, "the ledger is as before", before, used())
P
finish
