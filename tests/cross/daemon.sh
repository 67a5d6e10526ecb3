#!/bin/bash
# daemon.sh BUILD SYSROOT MODEL: rnbd and rnbctl of another machine run under qemu: a daemon answers with MODEL on each
# Arm tier, through the control socket, to the same text.
set -u
B=$1 sysroot=$2 model=$3
dir=$(mktemp -d) || exit 1
pid=
stop() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"
    rm -rf "$dir"
}
trap stop EXIT
fail() {
    echo "cross-daemon: $*" >&2
    [ -f "$dir/log" ] && sed 's/^/    /' "$dir/log" >&2
    exit 1
}
emulated() {
    local program=$1
    shift
    timeout 120 qemu-aarch64-static -cpu max -L "$sysroot" "$B/$program" "$@"
}
export RNBD_SOCKET="$dir/control.sock"

emulated rnbd --version || fail "rnbd --version"
emulated rnbctl --version || fail "rnbctl --version"
first=
for tier in scalar neon dotprod i8mm; do
    qemu-aarch64-static -cpu max -L "$sysroot" "$B/rnbd" --cpu "$tier" --ram 256MiB --listen "" \
        --socket "$RNBD_SOCKET" --model "tiny=$model" 2>"$dir/log" &
    pid=$!
    for _ in $(seq 100); do
        [ -S "$RNBD_SOCKET" ] && break
        kill -0 "$pid" 2>/dev/null || fail "rnbd --cpu $tier ended"
        sleep 0.2
    done
    answer=$(emulated rnbctl run tiny "the sun rose over the" --max-tokens 12 --temperature 0 2>"$dir/err") ||
        fail "--cpu $tier: $(cat "$dir/err")"
    [ -n "$answer" ] || fail "--cpu $tier answers nothing"
    [ "$answer" = "${first:=$answer}" ] || fail "--cpu $tier answers '$answer', scalar '$first'"
    kill "$pid" && wait "$pid" || fail "rnbd --cpu $tier did not end with 0"
    pid=
    rm -f "$RNBD_SOCKET"
    echo "$tier: $(printf '%s' "$answer" | cat -v | tr '\n' ' ')"
done
echo "cross-daemon: 4 tiers, one answer"
