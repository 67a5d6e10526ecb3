#!/bin/bash
# How much memory there is is looked at again for each change of the budget: a limit that has come down refuses what is
# above it, one that has gone up lets it pass, and a share is one of what there is now.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

# The machine's memory is what a file of ours says, in a mount namespace of the daemon's own.
put() { printf 'MemTotal: %d kB\nMemFree: 1000 kB\n' "$(($1 << 10))" >"$T/meminfo"; }
put 1024
mkdir "$T/bin"
cat >"$T/bin/rnbd" <<C
#!/bin/bash
exec unshare --mount bash -c 'mount --bind "$T/meminfo" /proc/meminfo && exec "\$0" "\$@"' "$B/rnbd" "\$@"
C
chmod +x "$T/bin/rnbd"
unshare --mount mount --bind "$T/meminfo" /proc/meminfo 2>/dev/null || skip "mount namespaces cannot be made here"
PATH=$T/bin:$PATH
printf '[memory]\nram = 75%%\n' >"$T/rnbd.conf"
rnbd --config "$T/rnbd.conf" --socket "$RNBD_SOCKET" --listen 127.0.0.1:0 2>>"$T/log" &
PID=$!
STARTED+=("$PID")
wait_for "rnbd to listen" rnbctl status || exit 1
is() {
    OUT=$(rnbctl budget --json)
    [ "$(field ram.budget <<<"$OUT") $(field ram.capacity <<<"$OUT")" = "$(($1 << 20)) $(($2 << 20))" ] ||
        fail "$3: not $1 MiB of $2: $OUT"
}
is 768 1024 "at start"
put 512
expect 1 rnbctl budget ram=600MiB
has "$ERR" '512 MiB'
is 512 512 "a lower limit"
expect 0 rnbctl budget ram=50%
is 256 512 "a share of it"
put 2048
expect 0 rnbctl budget ram=1536MiB
is 1536 2048 "a higher limit"
put 1600
expect 0 rnbctl reload
is 1200 1600 "a reload with a share"
printf '[memory]\nram = 1200MiB\n' >"$T/rnbd.conf"
put 1000
expect 1 rnbctl reload
has "$ERR" '1000 MiB'
is 1000 1000 "a budget in the configuration that is too large"
put 1600
expect 0 rnbctl reload
is 1200 1600 "and one that fits again"
finish
