#!/bin/bash
# What the service manager is told: READY, STATUS, WATCHDOG, RELOADING, STOPPING.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/listen.py" <<'P'
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
with open(sys.argv[2], "w", buffering=1) as f:
    while True:
        for line in s.recv(4096).decode().splitlines():
            print(f"{time.monotonic():.3f} {line}", file=f)
P
python3 "$T/listen.py" "$T/notify.sock" "$T/notes" &
STARTED+=($!)
wait_for "the listener" test -S "$T/notify.sock"
NOTIFY_SOCKET=$T/notify.sock WATCHDOG_USEC=400000 start --model slow="$SLOW"

said() { # said PATTERN: since the last mark
    tail -n "+$((MARK + 1))" "$T/notes" | cut -d' ' -f2- | grep -qE "$1"
}
mark() {
    MARK=$(wc -l <"$T/notes")
}

MARK=0
wait_for READY said '^READY=1$'
wait_for 'a status' said '^STATUS=ready'
sleep 1.1
n=$(grep -c 'WATCHDOG=1' "$T/notes")
[ "$n" -ge 4 ] || fail "only $n watchdog messages in a second of 200 ms each"
mark
rnbctl run slow 'word word word' --max-tokens 60 >/dev/null 2>&1 &
asker=$!
wait_for 'a status of the work' said '^STATUS=(LOADING|PREFILLING|DECODING|loading|generating).*slow'
wait_for 'the watchdog while it generates' said WATCHDOG=1
wait "$asker"
mark
kill -HUP "$PID"
wait_for RELOADING said '^RELOADING=1$'
wait_for 'the time of the reload' said '^MONOTONIC_USEC=[0-9]+$'
wait_for 'READY after the reload' said '^READY=1$'
mark
echo nonsense >"$T/rnbd.conf"
kill -HUP "$PID"
wait_for 'READY after a reload that failed' said '^READY=1$'
mark
stop
wait_for STOPPING said '^STOPPING=1$'
echo "note: $(cut -d' ' -f2- "$T/notes" | grep STATUS | sort | uniq -c | sort -rn | head -4 | tr -s ' ' | tr '\n' ';')"
: >"$T/rnbd.conf"

# A manager that is not there, or an address that is wrong, is no obstacle.
NOTIFY_SOCKET=$T/nobody.sock WATCHDOG_USEC=400000 start
stop
NOTIFY_SOCKET=relative WATCHDOG_USEC=nonsense start
finish
