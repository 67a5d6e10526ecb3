#!/bin/sh
# sdk.sh BUILD [MODEL-FILE]: OpenAI's own SDKs (PyPI and npm, exact versions) against a private rnbd; afterwards nothing may be
# running, waiting or reserved that was not before.  Needs a network once, for the packages; without it: skipped.
set -u
B=$1
top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top" || exit 1
here=tests/system/sdk
dir=$(mktemp -d) || exit 1
pid=
stop() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"
    rm -rf "$dir"
}
trap stop EXIT
mkdir -p "$B/sdk"
if ! [ -x "$B/sdk/venv/bin/python" ]; then
    if ! { python3 -m venv "$B/sdk/venv" && "$B/sdk/venv/bin/pip" install --quiet openai==3.57.0; }; then
        rm -rf "$B/sdk/venv"
        echo "sdk: skipped, the Python package openai cannot be had"
        exit 0
    fi
fi
if ! [ -d "$B/sdk/node_modules/openai" ]; then
    npm install --silent --no-audit --no-fund --prefix "$B/sdk" openai@6.30.1 || {
        echo "sdk: skipped, the npm package openai cannot be had"
        exit 0
    }
fi
model=${2:-}
[ -n "$model" ] || model=$(tests/support/fetch-model.sh "$B/models") || { echo "sdk: skipped, no model"; exit 0; }
export RNBD_SOCKET="$dir/control.sock"
"$B/rnbd" --listen 127.0.0.1:0 --socket "$RNBD_SOCKET" --model "small=$model" --model "embed=$B/tests/embed.gguf" 2>"$dir/log" &
pid=$!
n=0
until "$B/rnbctl" status >/dev/null 2>&1; do
    n=$((n + 1))
    [ "$n" -lt 100 ] || { echo "sdk: rnbd does not answer"; exit 1; }
    sleep 0.1
done
port=$("$B/rnbctl" --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)["port"])')
"$B/rnbctl" load small >/dev/null 2>&1 && "$B/rnbctl" load embed >/dev/null 2>&1 || exit 1
used() {
    "$B/rnbctl" --json budget | python3 -c 'import json, sys; print(json.load(sys.stdin)["ram"]["used"])'
}
before=$(used)
failed=0
"$B/sdk/venv/bin/python" $here/sdk.py "http://127.0.0.1:$port" small || failed=$((failed + 1))
cp $here/sdk.mjs "$B/sdk/sdk.mjs"
node "$B/sdk/sdk.mjs" "http://127.0.0.1:$port" small || failed=$((failed + 1))
sleep 1
left=$("$B/rnbctl" --json requests | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["requests"]))')
after=$(used)
echo "sdk: requests left $left, ledger before $before, after $after"
[ "$left" -eq 0 ] && [ "$before" -eq "$after" ] || failed=$((failed + 1))
echo "sdk: $((3 - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
