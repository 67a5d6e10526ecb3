#!/bin/bash
# What verify and the reading of metadata take of the page cache is given back; what was there before stays.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

BIG=$T/big.gguf
export BIG
"$B/tests/mkmodel" --preset smol-135m --layers 1 --vocab 150000 "$BIG" >/dev/null || fail 'no model of many words'
py <<'P' || exit 1
if not cached_counts(os.environ["BIG"]):
    print("note: skipped: this file system keeps or drops pages as it likes")
    open(T + "/skip", "w").close()
P
[ ! -e "$T/skip" ] || skip "the page cache cannot be told here"
start
py <<'P'
big = os.environ["BIG"]
ALLOW = 256 << 10

def left(what, of, ahead=0):
    n = sum(cached(f) for f in of)
    print(f"note: {n >> 10} KiB left after {what}")
    check(n <= ALLOW + ahead, what + " leaves no page cache", n)

for method in ["model.show", "model.plan", "model.verify"]:
    forget(big)
    rpc(method, target=big)
    left(method, [big])
# A verify that is given up.
with open(T + "/long.gguf", "wb") as f, open(big, "rb") as b:
    f.write(b.read())
    f.seek(2 << 30)
    f.write(b"x")
forget(T + "/long.gguf")
c = Rpc()
c.send("model.verify", target=T + "/long.gguf")
while (m := c.read()) and m.get("method") != "progress":
    pass
c.close()
wait_for("its bytes", lambda: sum(used().values()) == 0)
# What the kernel is reading ahead just then cannot be dropped.
left("a verify that is given up", [T + "/long.gguf"], 8 << 20)
# A file that is cut off within its metadata.
with open(T + "/short.gguf", "wb") as f, open(big, "rb") as b:
    f.write(b.read(2 << 20))
forget(T + "/short.gguf")
check("error" in Rpc().call("model.show", target=T + "/short.gguf"), "a file that is cut off is refused")
left("a file that is cut off", [T + "/short.gguf"])
# What others keep warm is not ours.
forget(big)
with open(big, "rb") as f:
    while f.read(1 << 20):
        pass
warm = cached(big)
rpc("model.show", target=big)
check(cached(big) >= warm - ALLOW, "what was there before stays", warm, cached(big))
P
finish
