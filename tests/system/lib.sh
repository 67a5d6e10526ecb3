# shellcheck shell=bash
# lib.sh - what every system test has: a folder of its own, a private rnbd in it, checks that count, cleaning up.
#
# A test says what it expects and goes on after a finding; `finish`, its last line, ends the daemon, which must exit
# with 0, and the test.  Exit status: 0 all held, 1 something did not, 77 skipped.

set -u
: "${B:?is the build folder; run make check-system}"
PATH=$B:$PATH
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
T=$(mktemp -d "${TMPDIR:-/tmp}/rnbd-system.XXXXXX")
export T PATH RNBD_SOCKET=$T/control.sock STATE_DIRECTORY=$T/state PYTHONPATH=$HERE PYTHONDONTWRITEBYTECODE=1 NO_COLOR=1
unset XDG_RUNTIME_DIR XDG_CONFIG_HOME NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_FDS JOURNAL_STREAM
FINDINGS=0
TINY=$B/tests/tiny.gguf # 2 layers: answers at once
SLOW=$B/tests/slow.gguf # 40 layers: an answer of thousands of tokens takes a while
EMBED=$B/tests/embed.gguf # an embedding model, mean pooling, context 512
MOE=$B/tests/moe.gguf # a mixture of experts that streams in a tight budget
export TINY SLOW EMBED MOE
PID=
STARTED=()
OUT='' ERR='' # of the last expect

clean_up() {
    local pid
    for pid in "${STARTED[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$T"
}
trap clean_up EXIT

fail() {
    echo "finding: $*"
    FINDINGS=$((FINDINGS + 1))
}

skip() {
    echo "$*"
    exit 77
}

# expect STATUS COMMAND...: runs it for at most 60 s; its output is in OUT and ERR.
expect() {
    local want=$1 status
    shift
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    OUT=$(tr -d '\0' <"$T/out") ERR=$(tr -d '\0' <"$T/err")
    [ "$status" -eq "$want" ] && return 0
    fail "$* ended with $status, not $want: $OUT $ERR"
    return 1
}

# has TEXT PART, lacks TEXT PART
has() {
    [[ $1 == *"$2"* ]] || fail "'$2' is not in: ${1:0:600}"
}
lacks() {
    [[ $1 != *"$2"* ]] || fail "'$2' is in: ${1:0:600}"
}

# one_sentence TEXT: an error is one line that begins with the program's name.
one_sentence() {
    [ "$(printf '%s\n' "$1" | wc -l)" -eq 1 ] || fail "not one line: $1"
}

# wait_for WHAT COMMAND...: tries for a minute, which only a failure takes.
wait_for() {
    local what=$1 i
    shift
    for ((i = 0; i < 1200; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    fail "waited in vain for $what"
    return 1
}

# field JSON-PATH: reads JSON from stdin and prints what stands at a dotted path.
field() {
    python3 -c 'import json, sys
o = json.load(sys.stdin)
for k in sys.argv[1].split("."):
    o = o[int(k)] if isinstance(o, list) else o[k]
print(o)' "$1"
}

# start [OPTION...]: rnbd with the configuration of $T/rnbd.conf, a port of its own in PORT and URL, its log in $T/log
# or LOG.
start() {
    [ -e "$T/rnbd.conf" ] || : >"$T/rnbd.conf"
    rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 --ram 512MiB "$@" 2>>"${LOG:-$T/log}" &
    PID=$!
    STARTED+=("$PID")
    wait_for "rnbd to listen" rnbctl status || { cat "$T/log"; exit 1; }
    PORT=$(rnbctl --json status | field port)
    URL=http://127.0.0.1:$PORT
    export PID PORT URL
}

# start_refused [OPTION...]: it must not start; the reason is in ERR.
start_refused() {
    local status
    timeout 20 rnbd "$@" >"$T/out" 2>"$T/err"
    status=$?
    ERR=$(cat "$T/err")
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || fail "rnbd $* ended with $status: $ERR"
}

# stop [SIGNAL]: ends the daemon, which must exit with 0.
# shellcheck disable=SC2120 # not every test names a signal
stop() {
    local status
    kill "-${1:-TERM}" "$PID"
    wait "$PID"
    status=$?
    [ "$status" -eq 0 ] || { fail "rnbd ended with $status"; tail -40 "$T/log"; }
    PID=
}

# py: a Python script from stdin with client.py at hand.
py() {
    timeout "${1:-100}" python3 -c 'import sys
from client import *
exec(compile(sys.stdin.read(), "test", "exec"))
done()' || FINDINGS=$((FINDINGS + 1))
}

finish() {
    [ -z "$PID" ] || stop
    [ "$FINDINGS" -eq 0 ] && exit 0
    [ ! -e "$T/log" ] || { echo "the log ends with:"; tail -15 "$T/log"; }
    exit 1
}
