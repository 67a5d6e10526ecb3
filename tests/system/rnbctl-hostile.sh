#!/bin/bash
# What people do to rnbctl: Ctrl-C, a pipe that closes, input that is no text or too long, a daemon that dies.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
rnbctl load slow 2>/dev/null >/dev/null

head -c 2000000 /dev/zero | tr '\0' a | timeout 20 rnbctl run tiny --max-tokens 2 2>"$T/err"
[ "${PIPESTATUS[2]}" -eq 1 ] || fail 'a prompt of 2 MB'
has "$(cat "$T/err")" '1048576'
for bytes in 'a\xff\xfeb' 'a\0b'; do
    printf '%b' "$bytes" | timeout 20 rnbctl run tiny --max-tokens 2 >/dev/null 2>"$T/err"
    [ "${PIPESTATUS[1]}" -eq 1 ] || fail 'a prompt that is no text'
    has "$(cat "$T/err")" 'no text'
done
expect 2 rnbctl run tiny $'\xff'
has "$ERR" 'argument 3'
expect 2 rnbctl load $'/tmp/\xff.gguf'

no_work() {
    [ "$(rnbctl requests | wc -l)" -eq 1 ]
}
# The reader of the answer goes away.
began=$SECONDS
timeout 30 rnbctl run slow hi --max-tokens 4000 | head -c 1 >/dev/null
[ $((SECONDS - began)) -lt 15 ] || fail 'an answer that nobody reads goes on'
wait_for 'the end of the work' no_work
# Ctrl-C ends an answer, a load, a bench; the work ends with it.
for words in 'run slow hi --max-tokens 4000' 'run slow --raw -' 'bench slow --repeats 100 --prompt 200 --gen 200' 'chat slow --max-tokens 4000'; do
    began=$SECONDS
    # shellcheck disable=SC2086 # words
    (echo hello; sleep 2) | timeout -s INT -k 20 1 rnbctl $words >/dev/null 2>"$T/err"
    [ $((SECONDS - began)) -lt 10 ] || fail "'$words' goes on after Ctrl-C"
    wait_for "the end of '$words'" no_work
done
# Many prompts in a row on a terminal that is none.
printf 'one\n\n\ntwo\n/clear\n/exit\nthree\n' | rnbctl chat tiny --max-tokens 2 >/dev/null || fail chat
# The daemon dies while it answers.
rnbctl run slow hi --temperature 0 --max-tokens 4000 >/dev/null 2>"$T/err" &
asker=$!
wait_for 'the answer to begin' bash -c 'rnbctl requests | grep -q DECODING'
kill -KILL "$PID"
wait "$PID" 2>/dev/null
wait "$asker"
[ $? -eq 1 ] || fail 'rnbctl ends with another status when rnbd dies'
one_sentence "$(cat "$T/err")"
PID=
# Nobody, or somebody else, at the other end of the socket.
python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind(os.environ["T"] + "/other.sock")
s.listen(5)
for answer in [b"", b"hello\n", b"{}\n", b"x" * 3000000, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n", b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n"]:
    c, _ = s.accept()
    try:
        c.recv(1000)
        c.sendall(answer)
    except OSError:
        pass
    c.close()' &
STARTED+=($!)
wait_for 'the other' test -S "$T/other.sock"
for _ in 1 2 3 4; do
    expect 1 rnbctl --socket "$T/other.sock" ps
    one_sentence "$ERR"
done
expect 0 rnbctl --socket "$T/other.sock" ps
expect 1 rnbctl --socket "$T/other.sock" ps
finish
