#!/bin/bash
# The part of systemd-pid1.sh that runs inside, as a unit of its own.  Writes to /out/log.
exec >>/out/log 2>&1
set -u

fail() { echo "finding: $*"; }
wait_for() {
    local what=$1 i
    shift
    for ((i = 0; i < 200; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    fail "waited in vain for $what"
}
show() { systemctl show -P "$1" "${2:-rnbd.service}"; }
pid() { show MainPID; }
ask() { curl -sS --max-time 20 "$@"; }
chat() {
    ask -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' "$@" \
        -d '{"model": "tiny", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]}'
}
drop_in() { # drop_in LINE...
    mkdir -p /etc/systemd/system/rnbd.service.d
    { echo '[Service]'; printf '%s\n' "$@"; } >/etc/systemd/system/rnbd.service.d/test.conf
    systemctl daemon-reload
}

systemd-sysusers /out/rnbd.sysusers || fail sysusers
systemd-tmpfiles --create /out/rnbd.tmpfiles || fail tmpfiles
cp /out/tiny.gguf /var/lib/rnbd/tiny.gguf
chmod 644 /var/lib/rnbd/tiny.gguf
printf '[memory]\nram = 200MiB\n[model tiny]\nfile = /var/lib/rnbd/tiny.gguf\n' >/etc/rnbd/rnbd.conf
chmod 644 /etc/rnbd/rnbd.conf

# -- the service alone
systemctl start rnbd.service || fail "start: $(systemctl status rnbd.service)"
[ "$(show ActiveState)" = active ] || fail "it is $(show ActiveState)"
[ "$(stat -c %U "/proc/$(pid)")" = rnbd ] || fail "it runs as $(stat -c %U "/proc/$(pid)")"
grep -q '^NoNewPrivs:[[:space:]]1' "/proc/$(pid)/status" || fail 'it may gain privileges'
grep -q '^CapEff:[[:space:]]0*$' "/proc/$(pid)/status" || fail "it has capabilities: $(grep CapEff "/proc/$(pid)/status")"
[ "$(chat)" = 200 ] || fail 'a chat is not answered'
rnbctl ps | grep -q tiny || fail 'rnbctl does not see the model'
show StatusText | grep -q ready || fail "its status is '$(show StatusText)'"
[ "$(cat "/proc/$(pid)/oom_score_adj")" -gt 0 ] || fail 'its OOM score is not raised'
# Members of its group control it; others do not.
runuser -u nobody -g rnbd -- rnbctl status >/dev/null || fail 'a member of the group may not control it'
runuser -u nobody -- rnbctl status 2>&1 | grep -q 'may not connect' || fail "another user: $(runuser -u nobody -- rnbctl status 2>&1 | head -1)"

# -- reload
sed -i 's/200MiB/210MiB/' /etc/rnbd/rnbd.conf
systemctl reload rnbd.service || fail reload
wait_for 'the new budget' bash -c 'rnbctl budget | grep -q "210 MiB"'
[ "$(show ActiveState)" = active ] || fail 'not active after the reload'

# -- stop, while an answer is running
(rnbctl run tiny hello --raw --max-tokens 2000 >/dev/null) &
sleep 0.2
systemctl stop rnbd.service || fail stop
[ "$(show Result)" = success ] || fail "the stop ended with $(show Result)"
[ "$(show ExecMainStatus)" = 0 ] || fail "it exited with $(show ExecMainStatus)"
wait

# -- a wrong configuration: failed at once, with a word in the journal
echo nonsense >>/etc/rnbd/rnbd.conf
systemctl start rnbd.service 2>/dev/null && fail 'it starts with a wrong configuration'
journalctl -u rnbd.service -o cat | grep -q 'rnbd.conf:5:' || fail 'the journal does not name the line'
systemctl stop rnbd.service
systemctl reset-failed rnbd.service
sed -i '$d' /etc/rnbd/rnbd.conf

# -- socket activation, by either socket
for by in http control; do
    systemctl start rnbd.socket rnbd-control.socket || fail sockets
    [ "$(show ActiveState)" = inactive ] || fail "the service is $(show ActiveState) before the first connection"
    [ "$(stat -c '%a %U %G' /run/rnbd/control.sock)" = '660 rnbd rnbd' ] || fail "control.sock is $(stat -c '%a %U %G' /run/rnbd/control.sock)"
    if [ $by = http ]; then ask http://127.0.0.1:8000/health | grep -q '"ok"' || fail 'HTTP does not start it'; fi
    rnbctl status >/dev/null || fail 'rnbctl after activation'
    [ "$(chat)" = 200 ] || fail 'a chat after activation'
    systemctl stop rnbd.socket rnbd-control.socket rnbd.service
    [ "$(show Result)" = success ] || fail "stopped with $(show Result)"
done
# The socket outlives a restart of the service: a client in between waits and is served.
systemctl start rnbd.socket rnbd-control.socket
ask http://127.0.0.1:8000/health >/dev/null
systemctl stop rnbd.service 2>/dev/null
ask http://127.0.0.1:8000/health | grep -q '"ok"' || fail 'the next connection does not start it again'
rnbctl status >/dev/null || fail 'the control socket is gone after a restart'

# -- the watchdog
drop_in WatchdogSec=2s
systemctl restart rnbd.service
sleep 3
[ "$(show NRestarts)" = 0 ] || fail 'the watchdog ends a healthy rnbd'
old=$(pid)
kill -STOP "$old"
began=$SECONDS
for ((i = 0; i < 300; i++)); do
    [ "$(pid)" != "$old" ] && [ "$(pid)" != 0 ] && [ "$(show ActiveState)" = active ] && break
    sleep 0.05
done
if [ "$(pid)" != "$old" ] && [ "$(show NRestarts)" = 1 ]; then echo "note: a stopped rnbd was replaced after $((SECONDS - began)) s"; else
    fail "a stopped rnbd was not replaced: $(show ActiveState) $(show NRestarts)"; fi
[ "$(chat)" = 200 ] || fail 'a chat after the restart'

# -- a key as a credential; a fence around the memory
echo sesame >/etc/rnbd/api-key
chmod 600 /etc/rnbd/api-key
sed -i 's/^ram = .*/ram = 50%/' /etc/rnbd/rnbd.conf
drop_in LoadCredential=api-key:/etc/rnbd/api-key Restart=no
systemctl stop rnbd.socket rnbd-control.socket
if systemctl restart rnbd.service; then
    [ "$(chat)" = 401 ] || fail 'no key is needed although there is a credential'
    [ "$(chat -H 'Authorization: Bearer sesame')" = 200 ] || fail 'the key of the credential is refused'
else
    # Without mounts of its own systemd leaves a folder that only root may enter: a key that cannot be read is no open door.
    journalctl -u rnbd.service -o cat | grep -q "cannot start.*api-key.*Permission denied" ||
        fail "a credential that cannot be read: $(journalctl -u rnbd.service -o cat -n 5)"
    echo 'note: credentials cannot be read in this boot, and rnbd refused to start, as it must'
    systemctl reset-failed rnbd.service
fi
drop_in MemoryMax=400M
systemctl start rnbd.socket rnbd-control.socket
systemctl restart rnbd.service
rnbctl budget | grep -q 'budget 200 MiB' || fail "a share of the control group's limit: $(rnbctl budget)"

# -- the journal
journalctl -u rnbd.service -o json -n 200 | grep -q '"PRIORITY":"5"' || fail 'no line of the journal has the priority of a notice'
journalctl -u rnbd.service -o cat | grep -q '^<[0-9]>' && fail 'a prefix stands in the journal'
journalctl -b -o cat | grep -iE 'rnbd.*(SIGSYS|segfault|core-dump)' && fail 'the journal tells of a crash'
systemctl stop rnbd.socket rnbd-control.socket rnbd.service
[ "$(show Result)" = success ] || fail "the last stop ended with $(show Result)"
echo 'all done'
echo journal:
journalctl -b -u rnbd.service -u rnbd.socket -o short-monotonic --no-pager | tail -80
