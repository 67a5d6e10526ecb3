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
# … and takes it back, also from a model that has grown into it.
sed -i "s/^ram = .*/ram = 200MiB/; /^\[daemon\]/,/^log_level/d; /^\[model other\]/,\$d" "$T/rnbd.conf"
expect 0 rnbctl reload
sed -i "s/^ram = .*/ram = $(($(held) - (4 << 20)))/" "$T/rnbd.conf"
expect 0 rnbctl reload
LOWER=$(rnbctl --json budget | field ram.budget)
expect 0 rnbctl run moe hello --max-tokens 2
cp "$T/rnbd.conf" "$T/away"
printf '[model other]\nfile = %s\naliases = mine\n' "$SLOW" >>"$T/rnbd.conf"
for i in 1 2 3 4 5; do
    sed -i "s/^ram = .*/ram = 200MiB/" "$T/rnbd.conf"
    expect 1 rnbctl reload
    wait_for "the budget of before, time $i" bash -c "[ \"\$(rnbctl --json budget | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"ram\"][\"budget\"])')\" = $LOWER ]"
done
mv "$T/away" "$T/rnbd.conf"
printf '[daemon]\nlog_level = debug\n' >>"$T/rnbd.conf"
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
stop

# A reload that waits for models to give back: the engine stands at a word for the log meanwhile.
mkfifo "$T/pipe"
exec 9<>"$T/pipe"
head -c 1000 "$TINY" >"$T/broken.gguf"
conf <<C
[daemon]
log_level = warning
[memory]
ram = 200MiB
[model moe]
file = $MOE
[model broken]
file = $T/broken.gguf
[model shut]
file = $T/broken.gguf
C
rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 2>"$T/pipe" &
PID=$!
STARTED+=("$PID")
export PID
wait_for rnbd rnbctl status
py <<'P'
c = Rpc()
check("result" in c.call("model.load", target="moe", ctx=512), "moe loads")
floor = c.call("cache.report", model="moe")["result"]["floor"]

def budget():
    return c.call("budget.get")["result"]["ram"]["budget"]

def configure(ram):
    with open(f"{T}/rnbd.conf") as f:
        text = f.read()
    with open(f"{T}/rnbd.conf", "w") as f:
        f.write(re.sub("(?m)^ram = .*", f"ram = {ram}", text))

def begin_waiting(broken):
    """a reload that takes a MiB of moe, and what holds it up"""
    lower = sum(used().values()) - (1 << 20)
    check(lower > floor, "there is something to give back", lower, floor)
    configure(lower)
    full = FullLog(f"{T}/pipe")
    first = Rpc()
    first.send("model.load", target=broken)
    wait_for("the load to fail", lambda: (broken, "failed") in [(m["name"], m["state"]) for m in c.call("model.list")["result"]["models"]])
    number = first.send("server.reload")
    status = first.send("server.status")
    check(first.read().get("id") == status, "a reload waits")
    return lower, full, first, number

# Another one is refused meanwhile, and a signal's comes after it.
before = budget()
lower, full, first, number = begin_waiting("broken")
m = c.call("server.reload")
check(m.get("error", {}).get("code") == -32029 and "waits for models" in m["error"]["message"], "a second reload is refused", m)
check(os.popen("rnbctl reload 2>&1").read() == f"rnbctl: {m['error']['message']}\n", "in one sentence")
check(budget() == before, "and changes nothing", budget(), before)
configure(150 << 20)
os.kill(PID, signal.SIGHUP)
for _ in range(2):
    c.call("server.status")
check(budget() == before, "nor does a signal, yet", budget(), before)
full.empty()
check("result" in first.answer(number), "the one that waited is done")
wait_for("the signal's", lambda: budget() == 150 << 20)

# Whoever asked may leave: it goes on without.
lower, full, first, number = begin_waiting("shut")
first.close()
for _ in range(2):
    c.call("server.status")
check("error" in c.call("server.reload"), "it still waits")
full.empty()
wait_for("the budget", lambda: budget() == lower)
configure(200 << 20)
m = c.call("server.reload")
check("result" in m and budget() == 200 << 20, "the next one is served", m, budget())
check("result" in c.call("generate", model="moe", prompt="x", max_tokens=2), "and so is moe")
P
finish
