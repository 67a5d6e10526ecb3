#!/bin/bash
# Ends with 0 on SIGTERM, SIGINT and rnbctl stop; a running answer goes on until the deadline; a second signal ends it.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

for how in TERM INT; do
    start
    stop "$how"
    [ ! -e "$RNBD_SOCKET" ] || fail "the control socket is left behind after SIG$how"
done

start
expect 0 rnbctl stop
has "$OUT" stopping
wait "$PID" || fail "rnbctl stop ended rnbd with $?"
expect 1 rnbctl status
has "$ERR" 'nobody listens'
one_sentence "$ERR"

echo '[daemon]
stop_timeout = 2s' >"$T/rnbd.conf"

begin_slow() {
    start --model slow="$SLOW"
    rm -f "$T/answer" # of the case before: the asker may be late to empty it
    # Greedy: random numbers could end the answer by themselves.
    rnbctl run slow hello --temperature 0 --max-tokens "$1" >"$T/answer" 2>"$T/answer.err" &
    ASKER=$!
    wait_for "tokens" test -s "$T/answer"
}

# Cut at the deadline.
begin_slow 8000
began=$SECONDS
stop
took=$((SECONDS - began))
[ "$took" -ge 1 ] && [ "$took" -le 6 ] || fail "the stop with an answer running took $took s, not about 2"
wait "$ASKER"
[ $? -eq 1 ] || fail "the answer that was cut off ended with 0"

# A second SIGTERM does not wait.
sed -i 's/2s/60s/' "$T/rnbd.conf"
begin_slow 8000
kill -TERM "$PID"
sleep 0.3
began=$SECONDS
stop
took=$((SECONDS - began))
[ "$took" -le 3 ] || fail "the second SIGTERM took $took s"
wait "$ASKER"

# One that is nearly done is finished, whole.
begin_slow 60
stop
wait "$ASKER" || fail "the answer within the deadline was cut off: $(cat "$T/answer.err")"

# While it stops, new work is refused with a reason on a connection that is there already.
start --model slow="$SLOW" --model tiny="$TINY"
py <<'P'
c = Rpc()
n = c.begin_long()
os.kill(PID, signal.SIGTERM)
wait_for("the stop", lambda: c.call("server.status")["result"]["state"] == "stopping")
m = c.call("generate", model="tiny", prompt="x", max_tokens=1)
check(m.get("error", {}).get("code") == -32003, "work is refused while stopping", m)
os.kill(PID, signal.SIGTERM)
P
wait "$PID" || fail "rnbd ended with $?"
PID=
finish
