#!/bin/bash
# Sockets that the service manager holds: both faces start rnbd and are served on what was passed.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

command -v systemd-socket-activate >/dev/null || skip 'systemd-socket-activate is not installed'
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
: >"$T/rnbd.conf"

activate() { # activate FDNAMES OPTION...
    local names=$1
    shift
    systemd-socket-activate "$@" --fdname="$names" -E PATH="$PATH" rnbd --config "$T/rnbd.conf" --socket "$T/unused.sock" --model tiny="$TINY" \
        >>"$T/log" 2>&1 &
    PID=$!
    STARTED+=("$PID")
    wait_for 'the sockets' test -S "$RNBD_SOCKET"
    export PID
}

for first in http control; do
    rm -f "$RNBD_SOCKET"
    activate http:control -l "127.0.0.1:$port" -l "$RNBD_SOCKET"
    if [ $first = http ]; then
        expect 0 curl -sS --max-time 20 "http://127.0.0.1:$port/health"
        has "$OUT" '"ok"'
    fi
    expect 0 rnbctl --json status
    [ "$(field port <<<"$OUT")" = "$port" ] || fail "status names another port: $(field port <<<"$OUT")"
    expect 0 curl -sS --max-time 20 "http://127.0.0.1:$port/v1/models"
    has "$OUT" tiny
    [ ! -e "$T/unused.sock" ] || fail 'the socket of the command line was made beside the one that was passed'
    stop
    [ -S "$RNBD_SOCKET" ] || fail 'rnbd removed a socket that is not its own'
done
# Names that say nothing: told apart by what they are.
rm -f "$RNBD_SOCKET"
activate a:b -l "$RNBD_SOCKET" -l "127.0.0.1:$port"
expect 0 rnbctl status
expect 0 curl -sS --max-time 20 "http://127.0.0.1:$port/health"
stop
# One alone: the other is made as configured.
rm -f "$RNBD_SOCKET"
echo '[http]
listen = 127.0.0.1:0' >"$T/rnbd.conf"
activate control -l "$RNBD_SOCKET"
expect 0 rnbctl --json status
stop
# A third one, or one of another kind, is refused with a word.
rm -f "$RNBD_SOCKET"
activate http:control:http -l "127.0.0.1:$port" -l "$RNBD_SOCKET" -l "$T/third.sock"
timeout 5 rnbctl status >/dev/null 2>&1
wait "$PID"
[ $? -eq 1 ] || fail 'three sockets were accepted'
grep -q 'from the service manager' "$T/log" || fail "no word about the third socket: $(tail -2 "$T/log")"
PID=
finish
