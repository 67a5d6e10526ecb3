#!/bin/bash
# The budget changes while a model generates; below what is used it is refused; --force lets idle models go.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
zero = used()
c = Rpc()
slow = c.call("model.load", target="slow", ctx=8192)["result"]
tiny = c.call("model.load", target="tiny")["result"]
total = rpc("budget.get")["ram"]["used"]
check(total == sum(used().values()), "the accounts sum to what is used", total, used())
check(slow["charged_bytes"] + tiny["charged_bytes"] == total, "the models' charges sum to what is used",
      slow["charged_bytes"], tiny["charged_bytes"], total)
m = c.call("budget.set", ram=total // 2)
check(m.get("error", {}).get("code") == -32009, "a budget below the floor of what is loaded is a conflict", m)
check("MiB" in m["error"]["message"], "with the sum", m)
check(rpc("budget.get")["ram"]["budget"] == 512 << 20, "and nothing has changed")
m = c.call("budget.set", ram=total)
check("result" in m, "a budget of just what is used will do", m)
rpc("budget.set", ram=512 << 20)
# While it generates.
g = Rpc()
n = g.begin_long()
for i in range(50):
    m = c.call("budget.set", ram=(400 + i) << 20)
    check("result" in m and m["result"]["ram"]["budget"] == (400 + i) << 20, "set while generating", m)
# Busy models do not go; idle ones do, with force alone.
m = c.call("budget.set", ram=total // 2)
check("error" in m, "without force nothing leaves", m)
floor = c.call("cache.report", model="slow")["result"]["floor"]
m = c.call("budget.set", ram=floor + (1 << 20), force=True)
check("result" in m, "with force the idle one leaves, and the busy one gives back", m)
check(sum(used().values()) <= floor + (1 << 20), "the ledger is below the budget", used())
names = [x["name"] for x in rpc("model.list", loaded=True)["models"]]
check(names == ["slow"], "the busy one stays", names)
m = c.call("budget.set", ram=1 << 20, force=True)
check("error" in m, "a budget below a busy model is refused even with force", m)
check([x["name"] for x in rpc("model.list", loaded=True)["models"]] == ["slow"], "and it stays")
m = c.call("budget.set", ram=1 << 20, cancel=True)
check("result" in m and m["result"]["ram"]["budget"] == 1 << 20, "unless what runs may be ended", m)
end = g.answer(n)
check("budget" in end.get("error", {}).get("message", ""), "the request says why it ended", end)
check(rpc("model.list", loaded=True)["models"] == [] and sum(used().values()) <= 1 << 20, "its model is gone", used())
rpc("budget.set", ram=512 << 20)
check("result" in c.call("model.load", target="slow", ctx=8192), "and comes back when there is room")
# Budgets are set in the order in which they were asked for, also behind one that has to wait.
n = g.begin_long()
low, high = Rpc(), Rpc()
low.send("budget.set", ram=1 << 20, cancel=True)
high.send("budget.set", ram=300 << 20)
one, two = low.answer(1), high.answer(1)
check("result" in one and "result" in two, "both are set", one, two)
check(rpc("budget.get")["ram"]["budget"] == 300 << 20, "the last one holds", one, two)
g.answer(n)
check("result" in c.call("model.load", target="slow", ctx=8192), "and has room for what the first took")
g.close()
wait_for("the end of the work", idle)
for bad in [0, -1, "0", "", "lots", "1e9", "200%", "-1GiB", 2**63 - 1, 1.5, True, None, [], "99999999999GiB", "NaN"]:
    m = c.call("budget.set", ram=bad)
    check("error" in m, "a budget that makes no sense is refused", bad, m)
m = c.call("budget.set", ram="20%")
check("result" in m, "a share", m)
m = c.call("budget.set", ram=2**60)
print("note: a budget of 1 EiB:", m.get("error", m.get("result")))
rpc("budget.set", ram=512 << 20)
c.call("model.unload", name="slow")
check(used() == zero, "the ledger is back at its start", used(), zero)
P
finish
