#!/bin/bash
# A model larger than its budget answers as in a large one, inside the budget, also while that changes.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model slow="$SLOW"
py <<'P'
zero = used()
c = Rpc()
CTX = 512

def ask(connection, n):
    return connection.call("generate", model="slow", prompt="Once upon a time", max_tokens=n, temperature=0,
                           ignore_eos=True)["result"]["text"]

def load(ram):
    rpc("budget.set", ram=ram)
    return c.call("model.load", target="slow", ctx=CTX)

def cache():
    return c.call("cache.report", model="slow", map=True, curve=True)["result"]

plan = c.call("model.plan", target="slow", ctx=CTX)["result"]
floor, total = plan["floor"], plan["peak"]
check(floor < total * 2 // 3, "it can do with less", floor, total)
load(512 << 20)
check(cache()["mode"] == "all", "with room all is resident", cache())
want, long = ask(c, 40), ask(c, 300)
c.call("model.unload", name="slow")

# A budget below the floor is refused, with the floor; from there on every one will do.
m = load(floor - (1 << 20))
check(m.get("error", {}).get("data") is not None and "MiB" in m["error"]["message"], "below the floor it is refused", m)
for ram in (floor + (1 << 20), (floor + total) // 2):
    m = load(ram)
    check("result" in m, "it loads", m)
    p = c.call("model.plan", target="slow", ctx=CTX, ram=ram)["result"]
    check(ask(c, 40) == want, "the same answer", ram)
    r = cache()
    check(r["mode"] == "stream" and r["ring"]["bytes_per_token"] > 0 and r["read"] > 0, "it streams", r)
    check(sum(used().values()) <= ram, "the ledger keeps the budget", used(), ram)
    time.sleep(1.1)
    check(rss() <= ram + (48 << 20), "and so does the process", rss(), ram)
    c.call("model.unload", name="slow")
    check(used() == zero, "nothing is left", used())

# The budget changes in the middle of an answer.
load(512 << 20)
floor = cache()["floor"]
g = Rpc()
done_text = []
import threading
t = threading.Thread(target=lambda: done_text.append(ask(g, 300)))
t.start()
for i in range(12):
    ram = [floor + (1 << 20), 512 << 20, (floor + total) // 2][i % 3]
    m = c.call("budget.set", ram=ram)
    check("result" in m, "it is changed while it generates", m)
    check(sum(used().values()) <= ram, "the ledger follows at once", used(), ram)
    time.sleep(0.05)
m = c.call("budget.set", ram=floor // 2)
check(m.get("error", {}).get("code") == -32009, "below the floor of what runs it is refused", m)
t.join()
check(done_text[0] == long, "the answer is that of an undisturbed run")
rpc("budget.set", ram=512 << 20)
c.call("model.unload", name="slow")
check(used() == zero, "the ledger is back at its start", used(), zero)
P
finish
