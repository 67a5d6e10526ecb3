#!/bin/bash
# cross.sh DIR: check_kernels and check_ops of DIR under qemu, each Arm tier on a processor that has it and nothing above
# it, so the choice at start is checked too; two runs at a time.  Prints counts per tier.  THIN=1 tries every shape.
set -u
dir=$1
thin=${THIN:-24}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# part NAME CPU PROGRAM ARGS...: runs it, and leaves its last line in $work/NAME.
part() {
    local name=$1 cpu=$2 status=0
    shift 2
    qemu-aarch64-static -cpu "$cpu" "$@" >"$work/$name.all" 2>&1 || status=$?
    [ $status -eq 0 ] || cat "$work/$name.all"
    echo "$name on $cpu: $(tail -n 1 "$work/$name.all")" >"$work/$name.last"
    [ $status -eq 0 ] || touch "$work/$name.failed"
}

# tier NAME CPU: what this processor starts with.
tier() {
    local got
    got=$(qemu-aarch64-static -cpu "$2" "$dir/check_kernels" --only nothing | sed -n 's/^tier \([a-z0-9]*\),.*/\1/p')
    [ "$got" = "$1" ] && return
    echo "$2 starts with tier '$got', not $1"
    touch "$work/tier-$1.failed"
}

tier neon cortex-a53
tier dotprod cortex-a76
tier i8mm max

kernels() {
    part "kernels-$1" "$2" "$dir/check_kernels" --only "_$1" --thin "$thin"
}
# ops NAME TIER CPU ARGS...
ops() {
    local name=$1 tier=$2 cpu=$3
    shift 3
    part "ops-$name" "$cpu" "$dir/check_ops" --tier "$tier" --threads 2 "$@"
}

# The widest tier runs every op: its kernels of rows are neon's.  Below it the matrices differ, and dotprod's stand for them.
{ ops i8mm i8mm max; ops dotprod-matmul dotprod cortex-a76 --only MATMUL; } &
# Not the scalar ones: check-kernels holds that C to double precision, and here neon's twins and every op are held to it.
kernels neon cortex-a53
kernels dotprod cortex-a76
kernels i8mm max
wait

cat "$work"/*.last
failed=$(find "$work" -name '*.failed' | wc -l)
echo "check-cross: $(find "$work" -name '*.last' | wc -l) parts, $failed failed"
[ "$failed" -eq 0 ]
