#!/bin/bash
# Headers, bodies, slow senders, slow readers, idle and too many connections.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/rnbd.conf" <<C
[http]
read_timeout = 1s
idle_timeout = 4s
body_max = 100KiB
header_max = 8KiB
connections = 20
send_max = 64KiB
C
start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
def shape(answer, status):
    head, _, body = answer.partition(b"\r\n\r\n")
    check(f" {status} ".encode() in head.split(b"\r\n")[0] + b" ", f"status {status}", answer[:200])
    try:
        check(set(json.loads(body)["error"]) >= {"message", "type", "param", "code"}, "OpenAI's shape", body)
    except (ValueError, KeyError):
        check(False, "a JSON error", answer[:400])

shape(send_raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 9000 + b"\r\n\r\n"), 400)
shape(send_raw(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n"), 400)
shape(send_raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(2000)) + b"\r\n"), 400)
shape(send_raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000), 413)
shape(send_raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"), 413)
with connect() as s:
    for piece in [b"POST /v1/compl", b"etions HTTP/1.1\r\nHost: localhost\r\nConte", b"nt-length:  10", b"2401\r\n"]:
        s.sendall(piece)
        time.sleep(0.05)
    shape(read_all(s), 413)
inner = b'{"model": "tiny", "max_tokens": 1, "prompt": "a"\n}\nContent-Length: 99999999\n'
shape(send_raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(inner) + inner), 400)
for line in [b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\nbroken header\r\n\r\n",
             b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: abc\r\n\r\n",
             b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"\0" * 50, b"GET / HTTP/1.1\nHost: localhost\n\n",
             b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"]:
    answer = send_raw(line, 10)
    check(answer == b"" or answer.startswith(b"HTTP/1."), "broken requests are answered or dropped", line, answer[:100])
    check(b"<HTML" not in answer, "and never with HTML", line, answer)
    check(http("GET", "/health").status == 200, "the server is alive after", line)
# Slow senders: a header, or a body, that does not arrive in time.
for begin in [b"GET /health HTTP/1.1\r\nHost: lo", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"]:
    began = time.monotonic()
    with connect() as s:
        s.sendall(begin)
        answer = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(300):
                s.settimeout(0.2)
                try:
                    more = s.recv(4096)
                    if not more:
                        break
                    answer += more
                except TimeoutError:
                    s.sendall(b"x")
        took = time.monotonic() - began
    check(took >= 0.9, "a slow sender is not cut off at once", took)
    shape(answer, 408)
# An idle connection is closed, a used one is not.
with connect() as s:
    began = time.monotonic()
    check(read_all(s) == b"", "nothing is said to an idle connection")
    check(time.monotonic() - began >= 3.5, "it is closed after idle_timeout", time.monotonic() - began)
with connect() as s:
    for _ in range(4):
        time.sleep(1.3)
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(s.recv(4096).startswith(b"HTTP/1.1 200"), "a used connection stays")
# A long answer is not idle.
a = http("POST", "/v1/chat/completions", long_body(150))
check(a.status == 200, "an answer that takes longer than all deadlines", a.status)
print("note: it took", a.json["timings"]["decode_ms"], "ms")
# Too many connections: the rest waits, and comes in when others go.
many = [connect() for _ in range(20)]
time.sleep(0.3)
late = connect()
late.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
late.settimeout(0.5)
try:
    check(False, "the 21st connection is served at once", late.recv(100))
except TimeoutError:
    pass
for s in many:
    s.close()
late.settimeout(60)
check(late.recv(100).startswith(b"HTTP/1.1 200"), "the 21st is served when there is room")
late.close()
check(rpc("server.status")["state"] == "idle", "control is not affected")
P
stop

# A slow reader of a stream is bounded by its own buffer and its work ends; others go on.
cat >"$T/rnbd.conf" <<C
[http]
send_max = 16KiB
C
start --model tiny="$TINY"
py <<'P'
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect(("127.0.0.1", PORT))
s.sendall(raw_request(chat_body(stream=True, max_tokens=2000, ignore_eos=True, n=16, logprobs=True, top_logprobs=20)))
wait_for("the slow reader's request", lambda: requests() != [])
check(chat().status == 200, "another client is answered meanwhile or after")
wait_for("the slow reader to be cut off", idle, 60)
n = rpc("server.status")["engine"]
check(n["requests_cancelled"] == 1, "its work was cancelled", n)
check(used()["requests"] == 0, "nothing is held", used())
s.close()
P
finish
