#!/bin/bash
# SIGHUP and server.reload: what can change does, what needs a restart is named, a wrong file changes nothing.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

conf() {
    cat >"$T/rnbd.conf"
}
conf <<C
[daemon]
log_level = info
[model tiny]
file = $TINY
C
start
conf <<C
[daemon]
log_level = debug
stop_timeout = 5s
[http]
connections = 7
[compute]
batch = 64
[model tiny]
file = $TINY
[model second]
file = $SLOW
aliases = zwei
C
expect 0 rnbctl reload
has "$OUT" 'http.connections'
has "$OUT" 'compute.batch'
lacks "$OUT" 'log_level'
has "$(rnbctl models)" second
# Named again as long as it has not been applied.
expect 0 rnbctl --json reload
has "$OUT" http.connections
has "$(rnbctl --json status | field config)" 'log_level = debug'
has "$(rnbctl --json status | field config)" 'stop_timeout = 5000ms'
has "$(rnbctl --json status | field config)" '[model second]'
expect 0 rnbctl load zwei --ctx 512

# A wrong file: refused with file and line, all stays.
conf <<C
[daemon]
log_level = loud
C
expect 1 rnbctl reload
has "$ERR" 'rnbd.conf:2:'
kill -HUP "$PID"
wait_for 'a word in the log' grep -q 'kept the old configuration' "$T/log"
has "$(rnbctl models)" second
expect 0 rnbctl run second hello --max-tokens 1

# A model that is no longer named is forgotten; a loaded one leaves.
conf <<C
[model tiny]
file = $TINY
C
kill -HUP "$PID"
wait_for 'the model to be forgotten' bash -c '! rnbctl models | grep -q second'
wait_for 'its memory to come back' bash -c '[ "$(rnbctl --json memory | python3 -c "import json, sys; print(json.load(sys.stdin)[\"pools\"][0][\"used\"])")" = 0 ]'

# The command line wins over a file that names another budget; without an option the file's budget is live.
conf <<C
[memory]
ram = 100MiB
[model tiny]
file = $TINY
C
expect 0 rnbctl reload
has "$(rnbctl budget)" '512 MiB'
stop
rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 2>>"$T/log" &
PID=$!
STARTED+=("$PID")
wait_for rnbd rnbctl status
has "$(rnbctl budget)" '100 MiB'
sed -i 's/100MiB/200MiB/' "$T/rnbd.conf"
expect 0 rnbctl reload
has "$(rnbctl budget)" '200 MiB'
expect 0 rnbctl load tiny
sed -i 's/200MiB/2MiB/' "$T/rnbd.conf"
expect 1 rnbctl reload
has "$ERR" 'what is loaded needs at least'
has "$(rnbctl budget)" '200 MiB'
# More of it than a model was loaded with: the model takes it.
held() {
    rnbctl --json memory | field pools.0.used
}
expect 0 rnbctl unload tiny
printf '[model moe]\nfile = %s\n' "$MOE" >>"$T/rnbd.conf"
sed -i 's/ram = 2MiB/ram = 200MiB/' "$T/rnbd.conf"
expect 0 rnbctl reload
FLOOR=$(rnbctl --json plan moe --ctx 512 | field floor)
sed -i "s/ram = 200MiB/ram = $((FLOOR + (4 << 20)))/" "$T/rnbd.conf"
expect 0 rnbctl reload
expect 0 rnbctl load moe --ctx 512
BEFORE=$(held)
sed -i "s/^ram = .*/ram = 200MiB/" "$T/rnbd.conf"
expect 0 rnbctl reload
expect 0 rnbctl run moe hello --max-tokens 2
[ "$(held)" -gt "$BEFORE" ] || fail "a model with $BEFORE bytes takes nothing of a budget that a reload has raised"
# Less of it than is in use: models give back down to their floors, also while one answers, and no further.
floor() {
    rnbctl --json cache moe | field floor
}
BEFORE=$(held)
rnbctl run moe hello --max-tokens 400 >"$T/answer" 2>&1 &
ANSWER=$!
wait_for 'the answer to begin' test -s "$T/answer"
LOWER=$((FLOOR + (4 << 20)))
sed -i "s/^ram = .*/ram = $LOWER/" "$T/rnbd.conf"
expect 0 rnbctl reload
[ "$(held)" -le "$LOWER" ] || fail "$(held) are held with a budget of $LOWER that a reload has set"
[ "$(rnbctl --json budget | field ram.budget)" = "$LOWER" ] || fail "the budget is $(rnbctl budget), not $LOWER"
wait "$ANSWER" || fail "the answer ended with $?"
sed -i "s/^ram = .*/ram = 200MiB/" "$T/rnbd.conf"
expect 0 rnbctl reload
expect 0 rnbctl run moe hello --max-tokens 2
[ "$(held)" -ge "$BEFORE" ] || fail "what was given back does not return"
printf '[daemon]\nlog_level = debug\n' >>"$T/rnbd.conf"
sed -i "s/^ram = .*/ram = $(($(floor) / 2))/" "$T/rnbd.conf"
BEFORE=$(held)
expect 1 rnbctl reload
has "$ERR" 'what is loaded needs at least'
[ "$(held)" -eq "$BEFORE" ] || fail "a reload that is refused took memory of a model"
has "$(rnbctl budget)" '200 MiB'
has "$(rnbctl --json status | field config)" 'log_level = info'
: >"$T/log"
kill -HUP "$PID"
wait_for 'the refusal in the log' grep -q 'kept the old configuration.*needs at least' "$T/log"
# What is refused after the budget gives it back.
expect 0 rnbctl load "$TINY" --name mine --ctx 512
printf '[model other]\nfile = %s\naliases = mine\n' "$SLOW" >>"$T/rnbd.conf"
sed -i "s/^ram = .*/ram = $(($(held) - (2 << 20)))/" "$T/rnbd.conf"
expect 1 rnbctl reload
has "$ERR" "belongs to model 'mine'"
has "$(rnbctl budget)" '200 MiB'
has "$(rnbctl --json status | field config)" 'log_level = info'
expect 0 rnbctl unload mine
sed -i '/^\[daemon\]/,$d; s/^ram = .*/ram = 200MiB/' "$T/rnbd.conf"
expect 0 rnbctl reload
expect 0 rnbctl unload moe
sed -i 's/200MiB/2MiB/' "$T/rnbd.conf"
# Gone, unreadable or a folder: the same.
mv "$T/rnbd.conf" "$T/away"
expect 1 rnbctl reload
mkdir "$T/rnbd.conf"
expect 1 rnbctl reload
rmdir "$T/rnbd.conf"
mv "$T/away" "$T/rnbd.conf"
sed -i 's/2MiB/200MiB/; $a [models]\ndir = /nowhere' "$T/rnbd.conf"
expect 1 rnbctl reload
has "$ERR" /nowhere
# A hundred at once.
sed -i '/models\]/,$d' "$T/rnbd.conf"
for _ in $(seq 100); do kill -HUP "$PID"; done
expect 0 rnbctl reload
expect 0 rnbctl run tiny hello --max-tokens 1
finish
