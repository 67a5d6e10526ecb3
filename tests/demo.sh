#!/bin/sh
# demo.sh BUILD: a real model answers through all of rnbd - daemon, control socket, rnbctl, HTTP - and every command
# is shown as it would be typed by hand.  Ends with 0 when all of it worked.
set -u
B=$1
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
budget=512MiB budget_kib=$((512 * 1024)) allowance_kib=$((48 * 1024))
dir=$(mktemp -d) || exit 1
socket=$dir/control.sock
pid=

stop() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"
    rm -rf "$dir"
}
trap stop EXIT
fail() {
    echo "demo: $*" >&2
    [ -f "$dir/log" ] && sed 's/^/    /' "$dir/log" >&2
    exit 1
}
say() {
    printf '\n\033[1m%s\033[0m\n' "$*"
}
# Shows a command as one would type it, then runs it.
show() {
    printf '$'
    for word in "$@"; do
        case $word in
            *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

export RNBD_SOCKET="$socket"
say "1. The model"
if model=$(tests/support/fetch-model.sh "$B/models"); then
    echo "$model: $(wc -c <"$model") bytes, SHA-256 checked"
else
    echo "The small model cannot be had here; a GENERATED tiny model with random weights takes its place, so its"
    echo "answers are noise.  Everything else is the same."
    model=$B/models/tiny.gguf
    "$B/tests/make_tiny" "$model" || fail "cannot write $model"
fi

say "2. The daemon, with a budget of $budget"
echo "\$ $B/rnbd --ram $budget --listen 127.0.0.1:0 --socket $socket --model small=$model &"
"$B/rnbd" --ram "$budget" --listen 127.0.0.1:0 --socket "$socket" --model "small=$model" 2>"$dir/log" &
pid=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    "$B/rnbctl" status >/dev/null 2>&1 && break
    kill -0 "$pid" 2>/dev/null || fail "rnbd ended"
    sleep 0.1
done
show "$B/rnbctl" status || fail "no answer on the control socket"
port=$("$B/rnbctl" --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)["port"])')

say "3. Will it fit?"
show "$B/rnbctl" plan small || fail "plan"

say "4. Load it"
show "$B/rnbctl" load small || fail "load"
show "$B/rnbctl" ps || fail "ps"

say "5. Ask it on the command line"
show "$B/rnbctl" run small "What is the capital of France? Answer in one sentence." --temperature 0 --max-tokens 48 --stats ||
    fail "run"

say "6. Ask it over HTTP, streamed"
body='{"model": "small", "stream": true, "max_tokens": 48, "temperature": 0, "messages": [{"role": "user", "content": "Name three colours."}]}'
echo "\$ curl -sN http://127.0.0.1:$port/v1/chat/completions -H 'Content-Type: application/json' -d '$body'"
curl -sN --max-time 120 "http://127.0.0.1:$port/v1/chat/completions" -H 'Content-Type: application/json' -d "$body" >"$dir/stream" ||
    fail "curl"
python3 - "$dir/stream" <<'END' || fail "the stream was not what OpenAI's clients expect"
import json, sys
text, ended, speed = "", False, None
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("data: [DONE]"):
        ended = True
    elif line.startswith("data: "):
        chunk = json.loads(line[6:])
        if "error" in chunk:
            sys.exit(chunk["error"]["message"])
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
        speed = chunk.get("timings", speed)
print(text)
print("(%.1f tokens/s decode, %.1f tokens/s prefill)" % (speed["tg_per_second"], speed["pp_per_second"]))
sys.exit(0 if ended and text else 1)
END

say "7. Who holds which byte"
show "$B/rnbctl" memory || fail "memory"
rss=$(awk '/^Rss:/ { print $2 }' "/proc/$pid/smaps_rollup")
echo "resident now: $rss KiB; allowed: budget $budget_kib KiB + 48 MiB"
[ "$rss" -le $((budget_kib + allowance_kib)) ] || fail "resident memory passes the budget"

say "8. Stop"
echo "\$ kill $pid"
kill "$pid"
wait "$pid"
status=$?
pid=
[ "$status" -eq 0 ] || fail "rnbd ended with $status"
echo "rnbd ended with 0"

say "By hand"
cat <<END
  $B/rnbd --ram $budget --model small=$model
  $B/rnbctl --socket \$SOCKET chat small      # the socket is in rnbd's first line
  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\
       -d '{"model": "small", "messages": [{"role": "user", "content": "Hello"}]}'
END
