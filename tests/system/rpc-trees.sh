#!/bin/bash
# A call is charged for the tree that its line is parsed to, before that, and for as long as it waits.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --ram 500MiB --model slow="$SLOW" --model tiny="$TINY"
py <<'P'
import select

limit = (500 + 48) << 20
c = Rpc()
c.begin_long(200000)
base, worst = used()["requests"], rss()
head = '{"jsonrpc":"2.0","id":1,"method":"generate","params":{"model":"slow","messages":['
line = head + ",".join(["[]"] * ((1000000 - len(head)) // 3)) + "]}}"
peers, refused = [], 0
for _ in range(7):
    p = Rpc()
    n = len(requests())
    p.raw(line)
    wait_for("it to wait or to be refused", lambda: select.select([p.sock], [], [], 0)[0] or len(requests()) > n)
    refused += bool(select.select([p.sock], [], [], 0)[0] and "error" in (p.read() or {}))
    peers.append(p)
    worst = max(worst, rss())
waiting = len(requests()) - 1
held = used()["requests"] - base
print(f"note: {waiting} wait, {refused} refused, {held >> 20} MiB charged, at most {worst >> 20} MiB resident")
check(worst <= limit, "resident memory within the budget", worst, limit)
check(refused >= 2 and waiting >= 2, "what does not fit is refused, and what fits is not", refused, waiting)
check(waiting + refused == 7, "each waits or is refused", waiting, refused)
check(held >= waiting * (40 << 20), "each is charged for its tree", held, waiting)
for p in peers:
    p.close()
c.close()
wait_for("their bytes", lambda: idle() and used()["requests"] == 0)
check("result" in Rpc().call("budget.get"), "others are answered")
# With no room at all, small calls still come through.
rpc("budget.set", ram=sum(used().values()) + 4096)
check("result" in Rpc().call("server.status"), "a small call is free")
rpc("budget.set", ram=sum(used().values()) + (4 << 20)) # of the line, not of its tree
c = Rpc()
c.raw(line)
m = c.read()
check(m and m["id"] is None and m["error"]["code"] == -32001, "a large one is refused before it is parsed", m)
check(rpc("budget.set", ram=500 << 20), "and the budget can be raised")
P
finish
