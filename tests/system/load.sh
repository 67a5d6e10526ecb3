#!/bin/bash
# Loading: progress lines in a pipe, files that are missing, hostile or too large, the same refusal on every face.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW" --model gone="$T/gone.gguf" --model dir="$T"
rnbctl load slow >"$T/out" 2>"$T/err" || fail "load: $(cat "$T/err")"
grep -q '^loading: 100 %' "$T/err" || fail "no progress in a pipe: $(cat "$T/err")"
grep -q $'\r' "$T/err" && fail "a bar in a pipe"
rnbctl --json load tiny 2>"$T/err" >"$T/out"
[ -s "$T/err" ] && fail "progress in the way of JSON: $(cat "$T/err")"
rnbctl unload slow >/dev/null

before=$(rnbctl --json memory | field pools.0.used)
expect 1 rnbctl load "$T/missing.gguf"
has "$ERR" missing.gguf
expect 1 rnbctl load gone
has "$ERR" gone.gguf
expect 1 rnbctl load dir
expect 1 rnbctl load missing
has "$ERR" tiny
mkfifo "$T/fifo.gguf"
expect 1 rnbctl load "$T/fifo.gguf"
py <<'P'
import random, struct
tiny = open(os.environ["TINY"], "rb").read()
hostile = {
    "empty": b"",
    "short": b"GGU",
    "magic": b"XXXX" + tiny[4:],
    "version": tiny[:4] + struct.pack("<I", 99) + tiny[8:],
    "counts": tiny[:8] + struct.pack("<QQ", 2**63, 2**63) + tiny[24:],
    "kvs": tiny[:16] + struct.pack("<Q", 10**12) + tiny[24:],
    "half": tiny[:len(tiny) // 2],
    "minus1": tiny[:-1],
    "header": tiny[:1000],
    "zeros": b"GGUF" + bytes(100000),
    "text": b"hello\n" * 1000,
    "swapped": b"GGUF" + struct.pack(">I", 3) + tiny[8:],
}
r = random.Random(1)
head = tiny.index(b"blk.0.")
for i in range(40):
    b = bytearray(tiny)
    for _ in range(r.randrange(1, 8)):
        b[r.randrange(8, head + 4000)] = r.randrange(256)
    hostile[f"flip{i}"] = bytes(b)
refused = 0
for name, data in hostile.items():
    path = f"{T}/{name}.gguf"
    with open(path, "wb") as f:
        f.write(data)
    c = Rpc()
    for method in ["model.show", "model.plan", "model.load"]:
        m = c.call(method, target=path)
        check(m is not None, f"the daemon survives {name} in {method}")
        if "error" in m:
            refused += 1
            e = m["error"]
            check(e["data"]["kind"] in ("FORMAT", "UNSUPPORTED", "NOMEM", "INVALID", "NOT_FOUND", "IO", "CONFLICT"), f"the kind of {name}", e)
            check(e["message"] and "\n" not in e["message"], f"one sentence for {name}", e)
        elif not name.startswith("flip"):
            check(False, f"{method} of {name} is not refused", m)
    if "result" in m:
        c.call("model.unload", name=m["result"]["name"])
    c.close()
    os.unlink(path)
check(refused > 40, "most were refused", refused)
P
after=$(rnbctl --json memory | field pools.0.used)
[ "$before" = "$after" ] || fail "the ledger held $before bytes before the refused loads and $after after"

# Too large: load, request and plan give the same sum.
rnbctl unload tiny >/dev/null
rnbctl budget ram=5MiB >/dev/null
py <<'P'
c = Rpc()
plan = c.call("model.plan", target="slow", ctx=4096)["result"]
check(not plan["fits"], "plan says it does not fit", plan)
load = c.call("model.load", target="slow", ctx=4096)
e = load.get("error", {})
check(e.get("code") == -32001, "load refuses for memory", load)
a = http("POST", "/v1/chat/completions", chat_body(model="slow"))
check(a.status == 503, "a request is refused for memory", a.status, a.body)
check(a.error["type"] == "insufficient_memory", "with its type", a.body)
check("retry-after" in a.headers, "with Retry-After", a.headers)
print("note: plan  ", plan.get("advice"))
print("note: load  ", e.get("message"))
print("note: http  ", a.error["message"])
for m in (e.get("message", ""), a.error["message"]):
    check("MiB" in m or "GiB" in m, "the sentence has the sum", m)
check(isinstance(e.get("data", {}).get("accounts"), dict), "load's error has the accounts", e)
check(used() == {k: 0 for k in used()}, "nothing is held", used())
P
expect 1 rnbctl load slow --ctx 4096
has "$ERR" weights
finish
