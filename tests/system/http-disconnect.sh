#!/bin/bash
# A client that leaves cancels its work: while queued, loading, prefilling and in mid-stream.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
rpc("model.load", target="slow")
rpc("model.load", target="tiny")
def converse():
    """the first conversation with a model makes its template, which stays with it"""
    check(http("POST", "/v1/chat/completions", chat_body(model="slow", max_tokens=1)).status == 200, "a conversation")
converse()
before = used()
open_before = len(os.listdir(f"/proc/{PID}/fd"))
for i in range(30):
    with connect() as s:
        s.sendall(raw_request(long_body(8000, stream=i % 3 != 0)))
        if i % 3 == 1:
            s.recv(1000)
        elif i % 3 == 2:
            time.sleep(0.05)
        if i % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
wait_for("the end of all that was left behind", idle)
check(requests() == [], "no request is left", requests())
check(used() == before, "the ledger is as before", before, used())
# All at once: one runs, the others wait.
many = []
for i in range(30):
    s = connect()
    s.sendall(raw_request(long_body(8000, stream=True)))
    many.append(s)
wait_for("30 requests", lambda: len(requests()) == 30)
began = time.monotonic()
for s in many:
    s.close()
wait_for("the end of all 30", idle)
print(f"note: 30 clients that left were forgotten after {(time.monotonic() - began) * 1000:.0f} ms")
check(requests() == [] and used() == before, "nothing is left", requests(), used())
# While the prompt is computed.
s = connect()
s.sendall(raw_request(long_body(10, text="word " * 1400)))
wait_for("the prefill", lambda: [r["step"] for r in requests()] == ["PREFILLING"])
s.close()
began = time.monotonic()
wait_for("the end of the prefill", idle)
print(f"note: a prefill whose client left ended after {(time.monotonic() - began) * 1000:.0f} ms")
# While the model is loaded.
for _ in range(10):
    rpc("model.unload", name="slow")
    with connect() as s:
        s.sendall(raw_request(long_body(10)))
        time.sleep(0.02)
    wait_for("the end of the load", lambda: idle() and all(m["state"] != "loading" for m in rpc("model.list")["models"]))
    if not any(m["name"] == "slow" for m in rpc("model.list", loaded=True)["models"]):
        check(used()["weights"] < before["weights"], "a load that was given up holds nothing", used())
    rpc("model.load", target="slow")
converse()
check(used() == before, "the ledger is as before", before, used())
# cancel by id.
c = Rpc()
n = c.begin_long()
number = requests()[0]["id"]
check("result" in Rpc().call("request.cancel", id=number), "cancel")
m = c.answer(n)
check(m.get("error", {}).get("code") == -32099, "the cancelled call says so", m)
m = Rpc().call("request.cancel", id=number)
check(m.get("error", {}).get("code") == -32004, "there is nothing to cancel any more", m)
a = []
t = threading.Thread(target=lambda: a.append(http("POST", "/v1/chat/completions", long_body(8000))))
t.start()
wait_for("the request", lambda: [r["step"] for r in requests()] == ["DECODING"])
rpc("request.cancel", id=requests()[0]["id"])
t.join()
print("note: a cancelled HTTP request is answered with", a[0].status, a[0].body.decode()[:120])
check(a[0].status >= 400, "a cancelled request is no 200", a[0].status)
time.sleep(0.6)
check(len(os.listdir(f"/proc/{PID}/fd")) <= open_before + 1, "no descriptor is left open", len(os.listdir(f"/proc/{PID}/fd")), open_before)
P
finish
