#!/bin/bash
# make install and uninstall, and what systemd and mandoc say of what was installed.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

top=$(cd ../.. && pwd)
run_make() {
    env -u MAKEFLAGS -u MAKELEVEL make -C "$top" --no-print-directory B="$B" "$@" >"$T/make.log" 2>&1 || fail "make $*: $(tail -5 "$T/make.log")"
}

run_make install DESTDIR="$T/root" PREFIX=/usr
for f in usr/bin/rnbd usr/bin/rnbctl usr/share/man/man8/rnbd.8 usr/share/man/man1/rnbctl.1 usr/share/man/man5/rnbd.conf.5 \
    usr/lib/systemd/system/rnbd.service usr/lib/systemd/system/rnbd.socket usr/lib/systemd/system/rnbd-control.socket \
    usr/lib/systemd/user/rnbd.service usr/lib/sysusers.d/rnbd.conf usr/lib/tmpfiles.d/rnbd.conf etc/rnbd/rnbd.conf etc/rnbd/conf.d \
    usr/share/bash-completion/completions/rnbctl usr/share/zsh/site-functions/_rnbctl usr/share/fish/vendor_completions.d/rnbctl.fish; do
    [ -e "$T/root/$f" ] || fail "$f is not installed"
done
grep -rlE '@[a-z]+@' "$T/root/usr/lib" && fail 'a path was not filled in'
grep -rl "$T" "$T/root/usr/lib" "$T/root/etc" && fail 'DESTDIR was written into a file'
expect 0 "$T/root/usr/bin/rnbd" --config "$T/root/etc/rnbd/rnbd.conf" --check-config
expect 0 "$T/root/usr/bin/rnbctl" config check "$T/root/etc/rnbd/rnbd.conf"
# The administrator's file is kept.
echo '# mine' >>"$T/root/etc/rnbd/rnbd.conf"
run_make install DESTDIR="$T/root" PREFIX=/usr
grep -q '# mine' "$T/root/etc/rnbd/rnbd.conf" || fail 'install replaced the configuration'
run_make uninstall DESTDIR="$T/root" PREFIX=/usr
left=$(find "$T/root" -type f)
[ "$left" = "$T/root/etc/rnbd/rnbd.conf" ] || fail "uninstall left: $left"

# In a place where systemd finds the program.
run_make install PREFIX="$T/inst" SYSCONFDIR="$T/inst/etc"
units=$T/inst/lib/systemd
if command -v systemd-analyze >/dev/null; then
    expect 0 systemd-analyze verify --man=no --recursive-errors=no "$units/system/rnbd.service" "$units/system/rnbd.socket" "$units/system/rnbd-control.socket"
    [ -z "$ERR" ] || fail "systemd-analyze verify says: $ERR"
    expect 0 env XDG_RUNTIME_DIR="$T" systemd-analyze --user verify --man=no --recursive-errors=no "$units/user/rnbd.service"
    expect 0 systemd-analyze security --offline=yes --threshold=20 "$units/system/rnbd.service"
    echo "note: systemd-analyze security: $(tail -1 <<<"$OUT" | tr -cd '[:print:]')"
fi
command -v systemd-sysusers >/dev/null && expect 0 systemd-sysusers --root="$T/sys" --dry-run "$T/inst/lib/sysusers.d/rnbd.conf" 2>/dev/null
if command -v mandoc >/dev/null; then
    for page in man8/rnbd.8 man1/rnbctl.1 man5/rnbd.conf.5; do
        expect 0 mandoc -Tlint -Wwarning "$T/inst/share/man/$page"
    done
fi
# The words of the completions come from the program.
# shellcheck source=/dev/null
. "$T/inst/share/bash-completion/completions/rnbctl"
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _rnbctl 2>/dev/null
    echo "${COMPREPLY[*]}"
}
start --model tiny="$TINY" --model slow="$SLOW"
has "$(complete_words rnbctl '')" unload
has "$(complete_words rnbctl unl)" unload
has "$(complete_words rnbctl unload '')" tiny
has "$(complete_words rnbctl run sl)" slow
has "$(complete_words rnbctl load x --k)" --kv
has "$(complete_words rnbctl load x --kv q8)" q8_0
has "$(complete_words rnbctl --socket "$RNBD_SOCKET" plan ti)" tiny
if command -v zsh >/dev/null; then zsh -n "$T/inst/share/zsh/site-functions/_rnbctl" || fail 'zsh does not like its completion'; fi
if command -v fish >/dev/null; then
    fish -n "$T/inst/share/fish/vendor_completions.d/rnbctl.fish" || fail 'fish does not like its completion'
    has "$(fish -c "source $T/inst/share/fish/vendor_completions.d/rnbctl.fish; complete -C 'rnbctl unload '")" tiny
    has "$(fish -c "source $T/inst/share/fish/vendor_completions.d/rnbctl.fish; complete -C 'rnbctl load x --k'")" --kv
    has "$(fish -c "source $T/inst/share/fish/vendor_completions.d/rnbctl.fish; complete -C 'rnbctl un'")" unload
fi
finish
