#!/bin/bash
# Logs: a full disk or a reader that is gone does no harm; text from outside cannot forge lines.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

: >"$T/rnbd.conf"
for sink in /dev/full "$T/closed"; do
    if [ "$sink" = /dev/full ]; then
        rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 --model tiny="$TINY" 2>/dev/full >/dev/full &
    else
        mkfifo "$T/pipe"
        head -1 <"$T/pipe" >/dev/null &
        rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 --model tiny="$TINY" 2>"$T/pipe" &
    fi
    PID=$!
    STARTED+=("$PID")
    wait_for "rnbd with $sink" rnbctl status
    PORT=$(rnbctl --json status | field port)
    export PORT PID
    for _ in 1 2 3; do expect 0 rnbctl run tiny hello --max-tokens 2; done
    stop
done

start --model tiny="$TINY"
py <<'P'
for name in ["x\nnotice daemon: forged", "x\r\n\x1b[31mred", "'quote", "%s%n", "\u202e", "x" * 5000]:
    http("POST", "/v1/chat/completions", chat_body(model=name))
    Rpc().call("model.load", target=name)
    Rpc().call("model.unload", name=name)
http("GET", "/%0anotice%20daemon:%20forged")
P
# shellcheck disable=SC1003 # an escape, not a quote
if grep -aq '^notice daemon: forged' "$T/log"; then fail "a line of the log was forged"; fi
if grep -aq $'\x1b' "$T/log"; then fail "an escape sequence stands in the log"; fi
awk 'length > 4096 { exit 1 }' "$T/log" || fail "a line is longer than 4 KiB"

# Levels, and the journal's prefixes.
stop
: >"$T/log"
JOURNAL_STREAM=1:2 start --log-level warning
stop
[ ! -s "$T/log" ] || fail "log_level warning logs $(cat "$T/log")"
JOURNAL_STREAM=1:2 start --log-level debug
stop
grep -q '^<[5-7]>' "$T/log" || fail "no prefix for the journal: $(head -1 "$T/log")"
finish
