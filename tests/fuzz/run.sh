#!/bin/sh
# run.sh FOLDER "LIBFUZZER ARGUMENTS" NAME...: runs FOLDER/fuzz_NAME over the seeds of each NAME, prints one line for
# each and a sum.  What it finds on the way goes to a corpus of its own, never among the seeds; an input that breaks
# a program is left in FOLDER/broken/.
folder=$1 args=$2
shift 2
passed=0 failed=0
mkdir -p "$folder/broken"
for name in "$@"; do
    program=$folder/fuzz_$name log=$folder/fuzz_$name.log corpus=$folder/corpus/$name
    if [ ! -x "$program" ]; then
        echo "fuzz_$name: was not built"
        failed=$((failed + 1))
        continue
    fi
    rm -rf "$corpus"
    mkdir -p "$corpus"
    seeds=tests/fuzz/seeds/$name
    [ -d "$seeds" ] || seeds=
    dict=
    [ -f "tests/fuzz/$name.dict" ] && dict=-dict=tests/fuzz/$name.dict
    # A program whose runs are long asks for a share of them.
    share=$(sed -n 's,^/\* runs: 1/\([0-9]*\) \*/$,\1,p' "tests/fuzz/fuzz_$name.c")
    runs=$(echo "$args" | sed -n 's/.*-runs=\([0-9]*\).*/\1/p')
    these=$args
    [ -z "$share" ] || [ -z "$runs" ] || these=$(echo "$args" | sed "s/-runs=$runs/-runs=$((runs / share))/")
    start=$(date +%s)
    # shellcheck disable=SC2086 # the arguments are words on purpose
    if UBSAN_OPTIONS=print_stacktrace=1 "$program" $these $dict -timeout=20 -rss_limit_mb=2048 \
        -artifact_prefix="$folder/broken/$name-" "$corpus" $seeds >"$log" 2>&1; then
        runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
        edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        echo "fuzz_$name: ok, ${runs:-?} runs, ${edges:-?} edges, $(($(date +%s) - start)) s"
        passed=$((passed + 1))
    else
        echo "fuzz_$name: FAILED, see $log"
        grep -v '^#[0-9]*[[:space:]]*\(NEW\|REDUCE\|pulse\|INITED\|READ\)' "$log" | tail -n 60
        failed=$((failed + 1))
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
