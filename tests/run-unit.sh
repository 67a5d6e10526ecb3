#!/bin/sh
# Runs each unit test program named on the command line (RUN, if set, in front of each), as many at a time as there are
# processors (JOBS), prints one line for each in their order and a sum; exit 1 if one failed.
passed=0 failed=0 bad=
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016 # for the inner shell
printf '%s\n' "$@" | WORK=$work xargs -P "${JOBS:-$(nproc)}" -I{} sh -c '
    out=$WORK/${1##*/}
    $RUN "$1" >"$out" 2>&1
    echo $? >"$out.status"' - {}
for program in "$@"; do
    out=$(cat "$work/${program##*/}")
    status=$(cat "$work/${program##*/}.status")
    # shellcheck disable=SC2046 # three numbers
    set -- $(printf '%s\n' "$out" | sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p')
    if [ $# -eq 3 ]; then
        n_bad=$(($2 + $3))
        passed=$((passed + $1 - n_bad)) failed=$((failed + n_bad))
        printf '%-24s %d passed, %d failed\n' "${program##*/}" $(($1 - n_bad)) "$n_bad"
        printf '%s\n' "$out" | sed -n 's,^note: ,    ,p'
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
