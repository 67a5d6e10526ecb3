#!/bin/bash
# Addresses and sockets: in use, stale, of the wrong kind, beyond loopback without a key.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

refused() { # refused PART OPTION...
    local part=$1
    shift
    start_refused --config "$T/empty.conf" --socket "$T/other.sock" "$@"
    has "$ERR" "$part"
    [ ! -e "$T/other.sock" ] || { fail "a refused start leaves its socket behind"; rm -f "$T/other.sock"; }
}

: >"$T/empty.conf"
start
refused 'Address already in use' --listen "127.0.0.1:$PORT"
refused 'a key is needed' --listen 0.0.0.0:0
refused 'a key is needed' --listen '[::]:0'
refused 'ADDRESS:PORT' --listen nonsense
refused 'ADDRESS:PORT' --listen :8000
refused '127.0.0.1:99999' --listen 127.0.0.1:99999
refused 'no-such-host.invalid' --listen no-such-host.invalid:80
refused "$T/nokey" --listen 127.0.0.1:0 --key-file "$T/nokey"
echo '# no key' >"$T/key"
refused 'holds no key' --listen 127.0.0.1:0 --key-file "$T/key"
refused '--ram' --listen 127.0.0.1:0 --ram 0
start_refused --config "$T/empty.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0
has "$ERR" 'listens'
rnbctl status >/dev/null || fail "a second rnbd on the same socket has taken the first one's"
start_refused --config "$T/empty.conf" --socket "$T/empty.conf" --listen 127.0.0.1:0
has "$ERR" 'no socket'
[ -e "$T/empty.conf" ] || fail "a file at the socket's path was removed"
start_refused --config "$T/empty.conf" --socket "$T/$(printf 'x%.0s' {1..120})" --listen 127.0.0.1:0
has "$ERR" 'bytes'
start_refused --config "$T/empty.conf" --socket /proc/rnbd/x.sock --listen 127.0.0.1:0
has "$ERR" '/proc/rnbd'
[ "$(stat -c %a "$RNBD_SOCKET")" = 660 ] || fail "the control socket has mode $(stat -c %a "$RNBD_SOCKET")"

# A socket that a killed rnbd left behind is no obstacle.
kill -KILL "$PID"
wait "$PID" 2>/dev/null
[ -e "$RNBD_SOCKET" ] || fail "no stale socket to try with"
start
stop

# Beyond loopback with a key; no HTTP at all; HTTP on a Unix socket.
echo sesame >"$T/key"
start --listen 0.0.0.0:0 --key-file "$T/key"
expect 0 curl -sS -o /dev/null -w '%{http_code}' "$URL/v1/models"
has "$OUT" 401
stop
start --listen ''
has "$(rnbctl status)" 'none'
stop
printf '[http]\nsocket = %s\n' "$T/http.sock" >"$T/rnbd.conf"
start --listen ''
expect 0 curl -sS --unix-socket "$T/http.sock" http://localhost/health
has "$OUT" '"ok"'
stop
[ ! -e "$T/http.sock" ] || fail "the HTTP socket is left behind"
finish
