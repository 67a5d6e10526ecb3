#!/bin/bash
# Pipelined requests, keep-alive, HEAD, HTTP/1.0, chunked bodies, Expect.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

def answers(data):
    """Splits a byte stream into (status, body) by Content-Length."""
    out = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        m = re.search(rb"(?i)content-length: (\d+)", head)
        n = int(m.group(1)) if m else 0
        out.append((status, rest[:n]))
        data = rest[n:]
    return out

def ask(data, count, timeout=60):
    with connect(timeout) as s:
        s.sendall(data)
        got = b""
        while len(answers(got)) < count or not got:
            more = s.recv(65536)
            if not more:
                break
            got += more
        return answers(got)

chat1 = raw_request(chat_body(max_tokens=3))
slow1 = raw_request(long_body(20))
check([a[0] for a in ask(GET * 5, 5)] == [200] * 5, "five pipelined reads")
check([a[0] for a in ask(chat1 + GET + chat1, 3)] == [200] * 3, "a read between two chats")
check([a[0] for a in ask(slow1 + GET, 2)] == [200] * 2, "a read behind a running answer")
check([a[0] for a in ask(slow1 + chat1 * 10, 11)] == [200] * 11, "ten chats behind a running answer")
# Early bytes while the first is running: garbage, halves, a flood.
for early in [b"x", b"\r\n", b"GET / HT", b"garbage\r\n\r\n", b"\0" * 100, raw_request(chat_body())[:-10], GET * 2000, b"y" * 300000]:
    with connect() as s:
        s.sendall(raw_request(long_body(30, stream=True)))
        check(s.recv(10).startswith(b"HTTP/1.1 2"), "the stream begins")
        try:
            s.settimeout(2)
            s.sendall(early)
        except (TimeoutError, ConnectionError):
            pass
        check(http("GET", "/health").status == 200, "alive after early bytes", early[:20])
        s.settimeout(60)
        got = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            while b"[DONE]" not in got:
                more = s.recv(65536)
                if not more:
                    break
                got += more
        check(b"[DONE]" in got, "the first answer is whole", early[:20], got[-200:])
wait_for("the end of the work", idle)
# A client that pipelines and leaves.
for _ in range(10):
    with connect() as s:
        s.sendall(slow1 + slow1 + chat1)
        time.sleep(0.05)
wait_for("the end of what was pipelined", idle)
# Half a close: the answer to a read still comes.
with connect() as s:
    s.sendall(GET)
    s.shutdown(socket.SHUT_WR)
    check(read_all(s).startswith(b"HTTP/1.1 200"), "a read after which the client closes its side")
# HEAD, HTTP/1.0, Connection: close.
a = http("HEAD", "/v1/models")
check(a.status == 200 and a.body == b"", "HEAD has no body", a.body)
c = http_connection()
check(http("HEAD", "/v1/models", connection=c).status == 200 and http("GET", "/v1/models", connection=c).status == 200, "HEAD leaves the connection usable")
c.close()
check(b'"ok"' in send_raw(b"GET /health HTTP/1.0\r\n\r\n", 5), "HTTP/1.0 closes")
check(b'"ok"' in send_raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 5), "Connection: close")
answer = send_raw(raw_request(chat_body(stream=True)).replace(b" HTTP/1.1", b" HTTP/1.0"), 30)
check(b"[DONE]" in answer, "a stream for HTTP/1.0", answer[-200:])
# Chunked bodies and Expect.
body = json.dumps(chat_body(max_tokens=2)).encode()
chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
check(send_raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks).startswith(b"HTTP/1.1 200"), "a chunked body")
with connect() as s:
    s.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
    check(s.recv(100).startswith(b"HTTP/1.1 100"), "100-continue")
    s.sendall(body)
    check(read_all(s).startswith(b"HTTP/1.1 200"), "and then the answer")
# One byte at a time.
with connect() as s:
    for b in raw_request(chat_body(max_tokens=2)):
        s.sendall(bytes([b]))
    check(s.recv(20).startswith(b"HTTP/1.1 200"), "one byte at a time")
P
finish
