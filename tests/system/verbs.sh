#!/bin/bash
# Every verb as text and as JSON, exit codes, help and completion words.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

is_json() {
    python3 -m json.tool <<<"$OUT" >/dev/null 2>&1 || fail "no JSON: ${OUT:0:300}"
}

mkdir "$T/models"
cp "$TINY" "$T/models/folder.gguf"
cat >"$T/rnbd.conf" <<C
[models]
dir = $T/models
[model tiny]
file = $TINY
aliases = default gpt-4o
ctx = 512
C
start
for verb in status models ps memory budget requests top reload; do
    expect 0 rnbctl $verb
    [ -n "$OUT" ] || fail "$verb prints nothing"
    expect 0 rnbctl --json $verb
    is_json
    expect 0 rnbctl $verb --json
    is_json
    expect 2 rnbctl $verb one two
    has "$ERR" "usage: rnbctl $verb"
    expect 2 rnbctl $verb --nonsense
done
expect 0 rnbctl models
has "$OUT" tiny
has "$OUT" folder
expect 0 rnbctl load tiny
has "$OUT" "loaded 'tiny': llama F16"
has "$OUT" 'context 512'
expect 0 rnbctl --json load default --pin
is_json
has "$(field name <<<"$OUT")" tiny
has "$(field pin <<<"$OUT")" True
expect 0 rnbctl ps
has "$OUT" ready
has "$OUT" stays
expect 0 rnbctl --json ps
[ "$(field models.0.name <<<"$OUT")" = tiny ] || fail "ps names another model: $OUT"
expect 0 rnbctl load "$TINY" --name second --ctx 256 --kv q8_0 --ttl 1h
has "$OUT" 'context 256'
expect 0 rnbctl top --count 2 --every 0.1
has "$OUT" second
[ "$(grep -c '^memory ' <<<"$OUT")" -eq 2 ] || fail "top looks $(grep -c '^memory ' <<<"$OUT") times, not 2"
expect 2 rnbctl top --every 0
expect 0 rnbctl ps
has "$OUT" second
has "$OUT" q8_0
for what in "$TINY" tiny; do
    expect 0 rnbctl show "$what"
    has "$OUT" general.architecture
    expect 0 rnbctl show "$what" --tensors
    has "$OUT" blk.0.attn_q.weight
    has "$OUT" '256 x 256'
    expect 0 rnbctl show "$what" --template
    has "$OUT" im_start
    expect 0 rnbctl --json show "$what"
    is_json
    expect 0 rnbctl plan "$what"
    has "$OUT" 'fits'
    has "$OUT" floor
    expect 0 rnbctl --json plan "$what" --ctx 100 --kv q4_0 --ram 1GiB
    is_json
    [ "$(field n_ctx <<<"$OUT")" = 100 ] || fail "plan has another context: $OUT"
done
expect 0 rnbctl plan "$TINY" --ram 2MiB
has "$OUT" 'does not fit'
expect 0 rnbctl budget ram=600MiB
has "$OUT" '600 MiB'
expect 0 rnbctl --json budget ram=50%
is_json
expect 0 rnbctl budget ram=512MiB
expect 0 rnbctl run tiny 'hello there' --max-tokens 8 --seed 3 --temperature 0.5 --top-p 0.9 --top-k 40 --stats
has "$ERR" tokens
[ -n "$OUT" ] || fail "run prints nothing"
first=$OUT
expect 0 rnbctl run tiny 'hello there' --max-tokens 8 --seed 3 --temperature 0.5 --top-p 0.9 --top-k 40
[ "$OUT" = "$first" ] || fail "the same seed gives another answer: '$first', '$OUT'"
expect 0 rnbctl run tiny hello --raw --max-tokens 4
expect 0 rnbctl run tiny hello --system 'Be short.' --max-tokens 4
expect 0 rnbctl run "$TINY" hello --max-tokens 4
expect 0 rnbctl --json run tiny hello --max-tokens 4
is_json
[ "$(field usage.completion_tokens <<<"$OUT")" -le 4 ] || fail "max-tokens did not hold: $OUT"
printf 'from a pipe' | rnbctl run tiny --max-tokens 4 >/dev/null || fail "run does not read its prompt from stdin"
printf 'one\n/clear\ntwo\n/exit\n' | rnbctl chat tiny --max-tokens 4 --seed 1 >"$T/chat" || fail "chat ended with $?"
[ -s "$T/chat" ] || fail "chat printed nothing"
expect 0 rnbctl bench tiny --prompt 16 --gen 4 --repeats 2 --depth 0,300
has "$OUT" '300'
has "$OUT" 'pp 16'
has "$OUT" 'tg 4'
expect 0 rnbctl --json bench tiny --prompt 16 --gen 4 --repeats 1
is_json
expect 0 rnbctl unload second
has "$OUT" 'given back'
expect 0 rnbctl --json unload tiny
is_json
[ "$(field freed <<<"$OUT")" -gt 1000000 ] || fail "unload freed little: $OUT"
expect 0 rnbctl complete verbs
has "$OUT" 'load:'
expect 0 rnbctl complete models
has "$OUT" folder
expect 0 rnbctl help
for verb in $(rnbctl complete verbs | cut -d: -f1); do
    expect 0 rnbctl help "$verb"
    has "$OUT" "usage: rnbctl $verb"
done
expect 0 rnbctl help --json
is_json
expect 0 rnbctl help --json model.load
[ "$(field params.target.type <<<"$OUT")" = string ] || fail "the schema of model.load: $OUT"
expect 1 rnbctl help --json model.nonsense
expect 0 rnbctl --version
expect 0 rnbctl --help

# Refused: 1 and one sentence.
for words in 'load nonsense' 'unload nonsense' 'unload tiny' 'show nonsense' 'plan nonsense' 'bench nonsense' 'run nonsense x' \
    'cancel 99' 'load tiny --kv f64' 'load tiny --ttl soon' 'load tiny --ctx 0x' 'budget ram=lots' 'budget vram=1GiB' \
    'load tiny --ctx 999999999' 'plan tiny --ram lots' 'load ./nowhere.gguf' 'show /' 'load /dev/zero' 'bench tiny --repeats 0' \
    'bench tiny --depth 1,2,3,4,5,6,7,8,9' 'bench tiny --gen -1' 'run tiny x --top-p 7' 'run tiny x --max-tokens 0'; do
    # shellcheck disable=SC2086 # words
    timeout 20 rnbctl $words >"$T/out" 2>"$T/err" </dev/null
    status=$?
    [ $status -eq 1 ] || [ $status -eq 2 ] || fail "'$words' ended with $status: $(cat "$T/out")"
    [ -s "$T/err" ] || fail "'$words' says nothing"
    head -1 "$T/err" | grep -q '^rnbctl: ' || fail "'$words' begins with another name: $(cat "$T/err")"
done
# Wrong usage: 2.
for words in '' nonsense '--nonsense' 'load' 'load a b' 'cancel' 'cancel x' 'cancel -1' 'run' 'run a b c' 'budget x=1' 'config' \
    'complete' 'complete x' 'help nonsense' '--socket' 'load --ctx' 'load tiny --ctx ten' 'load tiny --pin=yes' 'chat'; do
    # shellcheck disable=SC2086 # words
    expect 2 rnbctl $words
    [ -n "$ERR" ] || fail "'$words' says nothing"
done
expect 1 rnbctl --socket "$T/nowhere.sock" status
has "$ERR" "nobody listens on '$T/nowhere.sock'"
expect 1 rnbctl --socket "$(printf 'x%.0s' {1..200})" status
expect 0 env RNBD_SOCKET=/nowhere rnbctl --socket "$RNBD_SOCKET" status
rnbctl models >/dev/full 2>"$T/err"
[ $? -eq 1 ] || fail "an answer that cannot be written ends with 0"
rnbctl status | head -0
finish
