#!/bin/bash
# run.sh NAME...: runs system tests one after another, prints one line for each and a sum; exit 1 if one failed.
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 skipped=0 again=
for name in "$@"; do
    began=$SECONDS
    out=$(timeout 240 bash "./$name.sh" 2>&1)
    status=$?
    case $status in
    0)
        passed=$((passed + 1))
        echo "$name: ok ($((SECONDS - began)) s)"
        grep '^note: ' <<<"$out"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "$name: skipped, $(tail -1 <<<"$out")"
        ;;
    *)
        failed=$((failed + 1))
        echo "$name: FAILED (status $status)"
        printf '%s\n' "$out" | tail -60
        again+="$name: FAILED (status $status): $(grep -m3 '^finding: ' <<<"$out" | cut -c1-300)"$'\n'
        ;;
    esac
done
printf %s "$again"
echo "system: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
