#!/bin/bash
# Models leave: by ttl, when another needs their bytes, by hand; never while busy or pinned.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/rnbd.conf" <<C
[model a]
file = $TINY
ttl = 2s
[model b]
file = $TINY
pin = yes
ttl = 300ms
[model c]
file = $TINY
ttl = 0
[model slow]
file = $SLOW
ctx = 8192
C
start
py <<'P'
def loaded():
    return {m["name"] for m in rpc("model.list", loaded=True)["models"]}

def chat_on(name, **more):
    return http("POST", "/v1/chat/completions", chat_body(model=name, max_tokens=4, **more))

for name in "bca": # a last: it leaves first
    check(chat_on(name).status == 200, "a request loads " + name)
check(loaded() == {"a", "b", "c"}, "all three are loaded", loaded())
wait_for("a to leave", lambda: "a" not in loaded())
time.sleep(0.5)
check(loaded() == {"b", "c"}, "the pinned one and the one without a ttl stay", loaded())
check(chat_on("c", keep_alive="300ms").status == 200, "keep_alive as a text")
wait_for("c to leave after keep_alive", lambda: "c" not in loaded())
check(chat_on("c", keep_alive=0).status == 200, "keep_alive 0")
wait_for("c to leave at once", lambda: "c" not in loaded())
check(chat_on("a", keep_alive=-1).status == 200, "keep_alive -1")
time.sleep(2.5)
check("a" in loaded(), "keep_alive -1 keeps it", loaded())

# A busy model does not leave by hand without force, and not for another.
g = Rpc()
n = g.begin_long()
m = Rpc().call("model.unload", name="slow")
check(m.get("error", {}).get("code") == -32009, "a busy model is not unloaded", m)
check("force" in m["error"]["message"], "the error says what to do", m)
m = Rpc().call("model.unload", name="slow", force=True)
check(m.get("result", {}).get("freed", 0) > 50 << 20, "with force it is", m)
m = g.answer(n)
check("error" in m, "and its request ends with an error", m)
check("slow" not in loaded(), "it is gone", loaded())
g.close()

# Room is made by the idle, least recently used first, never by the pinned.
rpc("model.unload", name="a")
chat_on("c", keep_alive=-1)
size = {m["name"]: m["charged_bytes"] for m in rpc("model.list", loaded=True)["models"]}
check(set(size) == {"b", "c"}, "b and c are there", size)
chat_on("slow")
slow = next(m["charged_bytes"] for m in rpc("model.list", loaded=True)["models"] if m["name"] == "slow")
rpc("model.unload", name="slow")
rpc("budget.set", ram=slow + size["b"] + size["c"] // 2 + (3 << 20))
a = chat_on("slow")
check(a.status == 200, "slow is loaded although it does not fit beside c", a.status, a.body)
check(loaded() == {"b", "slow"}, "c has made room, the pinned b has not", loaded())
a = chat_on("c")
check(a.status == 200, "and back", a.status, a.body)
check("b" in loaded() and "c" in loaded(), "slow has made room", loaded())
check(Rpc().call("model.unload", name="b").get("result"), "a pinned one can be unloaded by hand")
P
finish
