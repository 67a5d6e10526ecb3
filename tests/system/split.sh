#!/bin/bash
# A model in parts, on two file systems where there are two, answers as the whole file does, in every budget.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

mkdir "$T/near" "$T/models"
FAR=$T/far
if [ -w /dev/shm ]; then
    FAR=$(mktemp -d /dev/shm/rnbd-split.XXXXXX)
    trap 'rm -rf "$FAR"; clean_up' EXIT
else
    mkdir "$FAR"
fi
[ "$(stat -c %d "$T/near")" != "$(stat -c %d "$FAR")" ] || echo "note: both folders are on one file system"
for name in slow moe; do
    python3 "$HERE/split_gguf.py" "$B/tests/$name.gguf" "$T/near/$name-1" "$FAR/$name-2" >"$T/out" || fail "cutting $name"
    ln -s "$T/near/$name-1" "$T/models/$name-00001-of-00002.gguf"
    ln -s "$FAR/$name-2" "$T/models/$name-00002-of-00002.gguf"
done
export FAR
start --model slow="$SLOW" --model moe="$MOE" --model slow2="$T/models/slow-00001-of-00002.gguf" \
    --model moe2="$T/models/moe-00001-of-00002.gguf"
py 200 <<'P'
zero = used()
c = Rpc()
CTX = 512
WORDS = "Once upon a time there was a small model in two parts"

def answer(model, ram):
    rpc("budget.set", ram=ram)
    m = c.call("model.load", target=model, ctx=CTX)
    check("result" in m, "it loads", model, ram, m)
    a = http("POST", "/v1/completions", dict(model=model, prompt=WORDS, max_tokens=24, temperature=0, logprobs=1,
                                             ignore_eos=True))
    check(a.status == 200, "it answers", model, ram, a.body)
    mode = c.call("cache.report", model=model)["result"]["mode"]
    c.call("model.unload", name=model)
    check(used() == zero, "nothing is left", model, used())
    return mode, a.json["choices"][0]["logprobs"]["token_logprobs"]

for name in ("slow", "moe"):
    plan = c.call("model.plan", target=name, ctx=CTX)["result"]
    floor, total = plan["floor"], plan["peak"]
    mode, want = answer(name, 512 << 20)
    check(mode == "all" and len(want) == 24, "the whole file in full", mode, len(want))
    modes = set()
    for ram in (512 << 20, (floor + total) // 2, floor + (2 << 20)):
        mode, got = answer(name + "2", ram)
        modes.add(mode)
        check(got == want, "the same numbers from two parts, to the last bit", name, ram, mode)
    check(modes & {"experts", "stream"}, "one of the budgets made it stream", modes)

# The part that streams is cut: the request fails and names a tensor, the daemon and the other model go on.
rpc("budget.set", ram=floor + (2 << 20))
check("result" in c.call("model.load", target="moe2", ctx=CTX), "it loads once more")
os.truncate(os.environ["FAR"] + "/moe-2", 4096)
a = http("POST", "/v1/completions", dict(model="moe2", prompt=WORDS, max_tokens=24, temperature=0))
check(a.status == 500, "a request that needs what was cut off fails", a.status, a.body)
check("tensor 'blk." in a.error["message"] and "cut" in a.error["message"], "and names the tensor", a.body)
check(http("GET", "/health").status == 200, "the daemon is alive")
c.call("model.unload", name="moe2", force=True)
check(used() == zero, "nothing is left", used())
mode, got = answer("moe", floor + (2 << 20))
check(got == want, "the whole file still answers", mode)
P
finish
