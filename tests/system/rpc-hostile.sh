#!/bin/bash
# Lines that are no calls, calls that are wrong, clients that flood or do not read: each gets its error, none does harm.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/rnbd.conf" <<C
[control]
connections = 8
send_max = 1MiB
C
start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
def one(line, code, says=None):
    c = Rpc(10)
    c.raw(line)
    m = c.read()
    while m and m.get("method") == "progress":
        m = c.read()
    good = check(m is not None and m.get("error", {}).get("code") == code, f"the code {code}", line[:80], m)
    if good and says:
        check(says in m["error"]["message"], f"says {says}", m)
    if good:
        check("\n" not in m["error"]["message"] and m["jsonrpc"] == "2.0" and "id" in m, "an envelope", m)
        check(m["error"]["data"].get("kind"), "a kind", m)
    check("result" in c.call("server.status"), "the connection still works", line[:80])
    c.close()
    return m

call = lambda **k: json.dumps({"jsonrpc": "2.0", "id": 1, **k})
for line in ["nonsense", "{", "[", '{"a":}', "'x'", "\u00e9", b"\xff\xfe\xfd", b"\0", '{"id":1e999}', "NaN", '{"a":1,"a":2}', "[" * 3000, '{"a":' * 3000]:
    one(line, -32700)
for line in ["{}", "5", '"x"', "null", "true", '{"jsonrpc":"1.0","id":1,"method":"server.status"}', '{"id":1,"method":"server.status"}', call(method=5), call(method=None), call(),
             '{"jsonrpc":"2.0","id":[],"method":"server.status"}', '{"jsonrpc":"2.0","id":{},"method":"server.status"}', '{"jsonrpc":"2.0","id":1.5,"method":"server.status"}',
             call(method="server.status", params=[1]), call(method="server.status", params=5), call(result=1, error=2)]:
    one(line, -32600)
one("[" + call(method="server.status") + "]", -32600, "batches")
one("[]", -32600)
for name in ["nonsense", "", "server", "server.status ", "SERVER.STATUS", "x" * 1000, "server.status\u0000"]:
    one(call(method=name), -32601 if "\0" not in name else -32700)
check(one(call(method="server.status", params={"x": 1}), -32602, "'x'")["id"] == 1, "the id comes back")
TYPES = {"string": [5, True, [], {}, 1.5], "int": ["5", 1.5, True, [], {}, 2**62], "bool": [1, "true", []], "array": [5, "x", {}], "number": ["1", [], True], "size": [True, [], 1.5], "time": [True, [], 1.5]}
methods = json.loads(os.popen("rnbctl help --json").read())
for m in methods:
    wanted = [n for n, p in m["params"].items() if not p["optional"]]
    if wanted:
        one(call(method=m["method"]), -32602, wanted[0])
        one(call(method=m["method"], params={wanted[0]: None}), -32602, wanted[0])
    fill = {n: {"string": "tiny", "int": 1}.get(m["params"][n]["type"], 1) for n in wanted}
    if m["method"] == "generate":
        fill = {"prompt": "x"}
    for name, p in m["params"].items():
        for value in TYPES[p["type"]]:
            if p["type"] == "int" and value == 2**62 and name in ("id", "seed"):
                continue
            one(call(method=m["method"], params={**fill, name: value}), -32602, name)
    one(call(method=m["method"], params={**fill, "nonsense": 1}), -32602, "nonsense")
for params in [{"target": "tiny", "kv": "f64"}, {"target": "tiny", "ttl": "soon"}, {"target": "tiny", "ctx": 0}, {"target": "tiny", "ctx": -1}, {"target": "tiny", "ttl": -1}]:
    one(call(method="model.load", params=params), -32602)
one(call(method="model.load", params={"target": ""}), -32602 if False else -32004) if False else None
for params in [{}, {"model": "tiny"}, {"model": "tiny", "prompt": "x", "messages": [{"role": "user", "content": "x"}]}, {"model": "tiny", "messages": []}, {"model": "tiny", "messages": [5]},
               {"model": "tiny", "messages": [{"role": 5}]}, {"model": "tiny", "prompt": "x", "temperature": -1}, {"model": "tiny", "prompt": "x", "max_tokens": 0},
               {"model": "tiny", "prompt": "x", "stop": [""]}, {"model": "tiny", "prompt": "x", "stop": [5]}, {"model": "tiny", "prompt": "x", "stop": ["a"] * 20}, {"model": "tiny", "prompt": "x", "seed": -1}]:
    one(call(method="generate", params=params), -32602)
# Ids of all kinds come back as they were; notifications get no answer.
c = Rpc(10)
for i in [0, -1, 2**53, "", "x", "\u00fc", "x" * 1000]:
    c.raw(json.dumps({"jsonrpc": "2.0", "id": i, "method": "budget.get"}))
    check(c.read()["id"] == i, "the id comes back", i)
c.raw(json.dumps({"jsonrpc": "2.0", "method": "server.shutdown"}))
c.raw("")
c.raw("   ")
c.raw(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "budget.get"}) + "\r")
m = c.read()
print("note: after a notification and empty lines:", json.dumps(m)[:160])
check(rpc("server.status")["state"] == "idle", "a notification does not shut anything down")
c.close()
# A line that is too long ends its connection with a word.
c = Rpc(20)
with contextlib.suppress(ConnectionError):
    c.raw(b"x" * (3 << 20))
m = None
with contextlib.suppress(ConnectionError):
    m = c.read()
check(m is None or m.get("error", {}).get("code") in (-32700, -32600, -32013), "a line of 3 MiB", m)
c.close()
c = Rpc(20)
c.raw(call(method="model.show", params={"target": "x" * 900000}))
check("error" in c.read(), "a long name is refused")
c.raw(b'{"jsonrpc":"2.0","id":1,"method":"budget.get"' + b" " * 1000000 + b"}")
check("result" in c.read(), "a long line of blanks is fine")
c.close()
# A thousand calls in one write; all are answered, in order.
c = Rpc(30)
c.sock.sendall(b"".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "server.status"}).encode() + b"\n" for i in range(200)))
check([c.read()["id"] for _ in range(200)] == list(range(200)), "200 calls in one write")
c.close()
# A byte at a time, and a client that closes its side after the question.
c = Rpc(10)
for b in call(method="budget.get").encode() + b"\n":
    c.sock.sendall(bytes([b]))
check("result" in c.read(), "a byte at a time")
c.close()
c = Rpc(10)
c.raw(call(method="budget.get"))
c.sock.shutdown(socket.SHUT_WR)
check((c.read() or {}).get("result"), "the answer comes although the client has closed its side")
c.close()
# One that asks and never reads is cut off, and others go on.
c = Rpc(20)
c.sock.setblocking(False)
sent = 0
end = time.monotonic() + 20
line = call(method="model.list").encode() + b"\n"
cut = False
while time.monotonic() < end and not cut:
    try:
        sent += c.sock.send(line * 50)
    except BlockingIOError:
        time.sleep(0.01)
    except ConnectionError:
        cut = True
check(cut, "a client that never reads is cut off", sent)
check(rss() < 200 << 20, "and has not filled the memory", rss())
c.sock.close()
# More connections than allowed wait.
many = [Rpc(5) for _ in range(8)]
for m in many:
    check("result" in m.call("server.status"), "eight are served")
late = Rpc(1)
late.raw(call(method="budget.get"))
try:
    late.read()
    check(False, "a ninth is served at once")
except TimeoutError:
    pass
many[0].close()
late2 = late
late.sock.settimeout(5)
data = late.sock.recv(4096)
check(b'"result"' in data, "the ninth is served when there is room", data)
for m in many[1:]:
    m.close()
late.sock.close()
# Random bytes.
import random
r = random.Random(7)
for _ in range(200):
    c = Rpc(5)
    with contextlib.suppress(ConnectionError):
        c.sock.sendall(bytes(r.randrange(256) for _ in range(r.randrange(2000))))
    c.close()
check(rpc("server.status")["state"] == "idle", "alive after random bytes")
P
finish
