#!/bin/sh
# Runs each unit test program named on the command line (RUN, if set, in front of each), prints one line for each and
# a sum; exit 1 if one failed.  What a test has counted ("note: ...") stands below its program.
passed=0 failed=0 bad=
for program in "$@"; do
    out=$($RUN "$program" 2>&1)
    status=$?
    # shellcheck disable=SC2046 # three numbers
    set -- $(printf '%s\n' "$out" | sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p')
    if [ $# -eq 3 ]; then
        n_bad=$(($2 + $3))
        passed=$((passed + $1 - n_bad)) failed=$((failed + n_bad))
        printf '%-24s %d passed, %d failed\n' "${program##*/}" $(($1 - n_bad)) "$n_bad"
        printf '%s\n' "$out" | sed -n 's/^note: /    /p'
        [ "$n_bad" -eq 0 ] && [ "$status" -eq 0 ] && continue
        [ "$n_bad" -eq 0 ] && failed=$((failed + 1))
    else
        failed=$((failed + 1))
        echo "${program##*/} ended with status $status and no sum"
    fi
    printf '%s\n' "$out"
    bad="$bad ${program##*/}"
done
echo "unit: $passed passed, $failed failed"
[ -z "$bad" ]
