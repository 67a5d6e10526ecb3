#!/bin/bash
# Large bodies are parsed beside the loop: their answers, clients that leave meanwhile, a daemon that stops meanwhile.
# How long others wait is printed, not judged.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

printf '[http]\nbody_max = 64MiB\n' >"$T/rnbd.conf"
start --model tiny="$TINY" --ram 8GiB
py 200 <<'P'
before = used()

def large(n, end):
    """A body of n small values, and one field that is refused behind them."""
    return (b'{"model": "tiny", "prompt": [' + b"1," * n + b'1], "max_tokens": 1, "' + end + b'": 1}')

def post(data):
    return http("POST", "/v1/completions", data, {"Content-Type": "application/json"})

a = post(large(200000, b"seed"))
check(a.status == 413 and "context" in a.error["message"], "a prompt that is too long, said with both counts", a.status, a.body)
a = post(large(3000000, b"nonsense"))
check(a.status == 400 and "nonsense" in a.error["message"], "the last field of a large body is looked at", a.status, a.body)
a = post(large(500000, b"seed")[:-1])
check(a.status == 400, "a body that is cut off", a.status, a.body)
a = http("POST", "/v1/completions", large(500000, b"seed"), {"Content-Type": "text/plain"})
check(a.status == 415, "a large body of the wrong type", a.status)
text = "a word " * 40000
a = http("POST", "/v1/chat/completions", chat_body(text))
check(a.status == 413 and "context" in a.error["message"], "a long text", a.status, a.body)
# Others are answered meanwhile.
body = large(12000000, b"nonsense")
answers, waits = [], []
t = threading.Thread(target=lambda: answers.append(post(body)))
t.start()
web = http_connection()
while t.is_alive():
    began = time.perf_counter()
    check(http("GET", "/health", connection=web).status == 200, "health meanwhile")
    waits.append(time.perf_counter() - began)
    time.sleep(0.01)
t.join()
check(answers[0].status == 400, "the large body is answered", answers[0].status, answers[0].body)
print(f"note: while {len(body) >> 20} MiB are read and parsed /health takes at most {max(waits) * 1000:.0f} ms, {len(waits)} calls")
# Clients that leave as soon as all is sent.
for _ in range(6):
    with connect() as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        s.sendall(body[:3000000])
    with connect() as s:
        small = large(400000, b"seed")
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(small) + small)
wait_for("the end of what was given up", idle)
wait_for("their bytes", lambda: used()["requests"] == before["requests"])
a = http("POST", "/v1/chat/completions", chat_body("hello"))
check(a.status == 200, "all is well after that", a.status)
P
# It stops while one is parsed.
python3 - <<'P'
import os, socket
body = b'{"model": "tiny", "prompt": [' + b"1," * 8000000 + b"1]}"
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
os.kill(int(os.environ["PID"]), 15)
P
wait "$PID" || fail "rnbd did not end with 0"
PID=
finish
