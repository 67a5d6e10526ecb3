#!/bin/sh
# run-parts.sh MAKE TARGET...: makes each target, all of them also after a failure, and ends with
# "N passed, N failed" over the targets; exit 1 if one failed.
make=$1
shift
passed=0 failed=0 bad='' times=''
for part in "$@"; do
    echo "== $part"
    began=$(date +%s)
    if $make --no-print-directory "$part"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) bad="$bad $part"
    fi
    times="$times $part $(($(date +%s) - began)) s,"
done
echo "took:${times%,}"
[ -z "$bad" ] || echo "failed:$bad"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
