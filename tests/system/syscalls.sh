#!/bin/bash
# While tokens are decoded, the threads that compute ask the kernel for nothing but futex waits, reads of the model and
# the word to the loop that a token is there.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

command -v strace >/dev/null || skip "strace is not installed"
strace -e trace=none true 2>/dev/null || skip "strace may not trace here"
start --threads 2 --model slow="$SLOW"
expect 0 rnbctl load slow
python3 -c 'from client import *
rpc("generate", model="slow", prompt="hello", max_tokens=7000, ignore_eos=True)' >"$T/answer" 2>&1 &
ASKING=$!
STARTED+=("$ASKING")
wait_for "the first tokens" sh -c 'rnbctl requests | grep -qi decoding'

grep -H . /proc/"$PID"/task/*/comm | sed 's|.*/task/\([0-9]*\)/comm:|\1 |' >"$T/threads"
sleep 0.3 # first tokens: tables are made, arenas grow
timeout -s INT 3 strace -f -p "$PID" -o "$T/trace" 2>"$T/strace"
[ -s "$T/trace" ] || skip "strace traced nothing: $(head -1 "$T/strace")"
kill -0 "$ASKING" 2>/dev/null || fail "the answer ended while it was traced: $(cat "$T/answer")"

# THREAD CALL COUNT: resumed calls were counted when they began.
awk 'NR == FNR { name[$1] = $2; next }
     $2 ~ /^[a-z_0-9]+\(/ { sub(/\(.*/, "", $2); n[name[$1] " " $2]++ }
     END { for (i in n) print i, n[i] }' "$T/threads" "$T/trace" | sort >"$T/calls"
echo "note: calls in 3 s of decode: $(tr '\n' ';' <"$T/calls")"
# A wake of the loop, one write to an eventfd a token, and its read when the letter has been taken.
allowed='futex|read|pread64|preadv|preadv2|io_uring_enter|write|sched_yield'
while read -r thread call n; do
    case $thread in
    rnbd-engine | team-*)
        [[ $call =~ ^($allowed)$ ]] || fail "thread $thread: $n $call while it computes"
        ;;
    esac
done <"$T/calls"
grep -q '^rnbd-engine ' "$T/calls" || fail "no call of the engine was seen: $(cat "$T/threads")"
grep -q ' team-' "$T/threads" || fail "there is no thread of the team: $(cat "$T/threads")"
# The engine may write to nothing but eventfds.
engine=$(awk '$2 == "rnbd-engine" { print $1 }' "$T/threads")
for fd in $(sed -n "s/^$engine *write(\([0-9]*\),.*/\1/p" "$T/trace" | sort -u); do
    [[ $(readlink "/proc/$PID/fd/$fd") == *eventfd* ]] || fail "the engine writes to $(readlink "/proc/$PID/fd/$fd")"
done
kill "$ASKING" 2>/dev/null
finish
