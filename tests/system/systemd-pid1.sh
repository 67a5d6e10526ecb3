#!/bin/bash
# The units under a real systemd as PID 1: start, sockets, reload, stop, watchdog, credential, MemoryMax, who may control.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

[ "$(id -u)" -eq 0 ] || skip 'needs root'
[ -x "${SDPID1:-}" ] || skip "SDPID1 names no tool that boots systemd"
top=$(cd ../.. && pwd)
units=$T/units
mkdir "$units"
chmod 755 "$T" "$units"
for u in rnbd.service rnbd.socket rnbd-control.socket; do
    sed -e 's,@bindir@,/usr/local/bin,; s,@confdir@,/etc/rnbd,' "$top/systemd/$u" >"$units/$u"
done
cp "$top/systemd/rnbd.sysusers" "$top/systemd/rnbd.tmpfiles" "$TINY" "$units"
cat >"$units/rnbd-test.target" <<'U'
[Unit]
Requires=basic.target rnbd-test.service
After=basic.target
U
cat >"$units/rnbd-test.service" <<'U'
[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
TimeoutStartSec=150s
ExecStart=/bin/bash /out/script
U
cp systemd-pid1-inside.bash "$units/script"
: >"$units/log"
timeout 200 "$SDPID1" "$units" "$B/rnbd" "$B/rnbctl" >"$T/boot" 2>&1
status=$?
console=$(sed -n 's/^console: //p' "$T/boot")
grep '^note: ' "$units/log"
grep '^finding: ' "$units/log" && FINDINGS=1
grep -q '^all done$' "$units/log" || { fail "the script inside did not come to its end (status $status)"; cat "$units/log" "$console" | tail -40; }
[ "$FINDINGS" -eq 0 ] || sed -n '/^journal:/,$p' "$units/log" | tail -40
rm -f "$console"
finish
