#!/bin/bash
# The queue: comments while waiting, 429 with Retry-After when full, a longest wait, other models in between.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/rnbd.conf" <<C
[queue]
length = 3
[http]
keepalive = 200ms
C
start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
rpc("model.load", target="slow")
rpc("model.load", target="tiny")
first = connect()
first.sendall(raw_request(long_body(8000)))
wait_for("the first to run", lambda: [r["step"] for r in requests()] == ["DECODING"])
waiting = connect()
waiting.sendall(raw_request(chat_body(stream=True)))
plain = connect()
plain.sendall(raw_request(chat_body()))
third = connect()
third.sendall(raw_request(chat_body(stream=True)))
wait_for("three to wait", lambda: len(requests()) == 4)
check([r["step"] for r in requests()] == ["DECODING"] + ["QUEUED"] * 3, "one runs, three wait", requests())
a = chat()
check(a.status == 429, "the fourth that waits is refused", a.status, a.body)
check(a.headers.get("retry-after", "").isdigit(), "with Retry-After", a.headers)
check(a.error["type"] == "rate_limit_error", "and its type", a.body)
m = Rpc().call("generate", model="tiny", prompt="x")
check(m.get("error", {}).get("code") == -32029, "the same by RPC", m)
third.close()
wait_for("the third to leave", lambda: len(requests()) == 3)
def read_until(enough):
    got = b""
    while not enough(got):
        more = waiting.recv(65536)
        if not more:
            break
        got += more
    return got
got = read_until(lambda got: got.count(b": waiting\n\n") >= 3)
check(got.count(b": waiting\n\n") >= 3 and b"data:" not in got, "comments while it waits", got[-300:])
first.close()
got = read_until(lambda got: b"[DONE]" in got)
check(b"[DONE]" in got, "and then the answer", got[-200:])
check(plain.recv(100).startswith(b"HTTP/1.1 200"), "the one without a stream is answered")
P
stop

# Too long in the queue.
printf '[queue]\nwait = 1s\n[http]\nkeepalive = 200ms\n' >"$T/rnbd.conf"
start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
rpc("model.load", target="slow")
rpc("model.load", target="tiny")
first = connect()
first.sendall(raw_request(long_body(8000)))
wait_for("the first to run", lambda: [r["step"] for r in requests()] == ["DECODING"])
began = time.monotonic()
a = chat()
took = time.monotonic() - began
check(a.status == 408, "too long a wait is a timeout", a.status, a.body)
check(took >= 1, "after queue.wait", took)
a = http("POST", "/v1/chat/completions", chat_body(stream=True))
check(a.status == 200 and b'"timeout_error"' in a.body, "in a stream that has begun it is an event", a.status, a.body[-300:])
first.close()
wait_for("the end", idle)
P
finish
