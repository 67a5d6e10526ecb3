#!/bin/bash
# The pressure setting: its default, and a reload that turns it off and on, beside a budget that is changed by hand.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

conf() {
    printf '[memory]\nram = 512MiB\npressure = %s\n[model tiny]\nfile = %s\n' "$1" "$TINY" >"$T/rnbd.conf"
}
conf yes
start
[ -r /proc/pressure/memory ] || has "$(cat "$T/log")" 'no PSI'
for value in no yes no; do
    conf $value
    expect 0 rnbctl reload
    lacks "$OUT" 'memory.pressure'
    has "$(rnbctl --json status | field config)" "pressure = $value"
    expect 0 rnbctl budget ram=400MiB
    expect 0 rnbctl run tiny hello --max-tokens 4
    sleep 1.2 # a sample is taken every second
    has "$(rnbctl --json budget)" '"budget": 419430400'
    expect 0 rnbctl budget ram=512MiB
done
conf maybe
expect 1 rnbctl reload
has "$ERR" 'neither yes nor no'
finish
