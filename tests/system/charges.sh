#!/bin/bash
# What clients leave with the daemon is in the ledger: lines that are not whole, answers that are not read, the
# rendering of a conversation; and it is refused when there is no room.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model embed="$EMBED"
py <<'P'
rpc("model.load", target="tiny")
rpc("model.load", target="embed")
http("POST", "/v1/chat/completions", chat_body())
before = used()["requests"]

def held():
    return used()["requests"] - before

# Lines that are not whole.
peers = [Rpc() for _ in range(10)]
for p in peers:
    p.sock.sendall(b"x" * 900000)
wait_for("the bytes of lines that are not whole", lambda: held() >= 10 * 900000 - 10 * 65536)
rpc("budget.set", ram=sum(used().values()) + (1 << 20))
for p in peers[:1]:
    p.sock.sendall(b"\n")
    check("error" in p.read(), "a whole line is answered, whatever it says")
late = [Rpc() for _ in range(4)]
for p in late:
    with contextlib.suppress(ConnectionError):
        p.sock.sendall(b"z" * 900000)
answers = []
for p in late:
    p.sock.settimeout(1)
    with contextlib.suppress(TimeoutError, ConnectionError):
        answers.append(p.read())
check(any(a and "error" in a for a in answers), "lines beyond the budget are refused", answers)
for p in [*late, *peers]:
    p.close()
wait_for("their bytes", lambda: held() == 0)
rpc("budget.set", ram=512 << 20)
# An answer that is not read.
body = {"model": "embed", "input": [[i % 250 + 1] for i in range(2000)]}
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect(("127.0.0.1", PORT))
s.sendall(raw_request(body, "/v1/embeddings", "Connection: close\r\n"))
wait_for("the bytes of an answer that is not read", lambda: idle() and held() > 65536, 60)
answer = read_all(s)
print("note: the answer has", len(answer), "bytes")
check(len(answer) > 5 << 20 and answer.startswith(b"HTTP/1.1 200"), "it is whole when it is read at last", len(answer), answer[:100])
wait_for("its bytes", lambda: held() == 0)
# Its room goes from the request to the connection: who computed an answer can send it.
numbers = len(json.loads(answer.partition(b"\r\n\r\n")[2])["data"][0]["embedding"]) * 2000
rpc("budget.set", ram=sum(used().values()) + 48 * numbers + (3 << 20))
a = http("POST", "/v1/embeddings", body)
check(a.status == 200 and len(a.json["data"]) == 2000, "an answer that is charged already needs no more room", a.status, a.body[:300])
wait_for("its bytes", lambda: held() == 0)
rpc("budget.set", ram=512 << 20)
# A conversation, while it is rendered.
peak = rpc("memory.report")["pools"][0]["accounts"]
http("POST", "/v1/chat/completions", chat_body("many words " * 20000))
now = next(a["peak"] for a in rpc("memory.report")["pools"][0]["accounts"] if a["name"] == "requests")
check(now >= 2 * 220000, "rendering is in the ledger", now, peak)
check(held() == 0, "and leaves nothing behind", held())
P
finish
