#!/bin/bash
# What the text of a model took of the heap is gone from RSS once it is unloaded, however often that happens.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

BIG=$T/big.gguf
export BIG
"$B/tests/mkmodel" --preset smol-135m --layers 1 --vocab 150000 "$BIG" >/dev/null || fail 'no model of many words'
start --model tiny="$TINY" --model big="$BIG"
py <<'P'
def load(name):
    rpc("model.load", target=name, ctx=512)
    rpc("generate", model=name, prompt="hello", max_tokens=2)

def unload(name):
    rpc("model.unload", name=name)

load("tiny")
before = rss()
unload("tiny")
for i in range(3):
    load("big")
    load("tiny") # what it takes lies behind what the other will free
    most = rss()
    unload("big")
    left = rss()
    print(f"note: {before >> 20} MiB with tiny, {most >> 20} MiB with both, {left >> 20} MiB after")
    check(left <= before + (5 << 20), "what was freed is gone", before, most, left)
    unload("tiny")
P
finish
