#!/bin/bash
# sysroot.sh DIR: Debian's arm64 packages that rnbd is built from, unpacked under DIR/root.  apt works in folders of its
# own there: nothing of this machine is asked or changed, no architecture added, and no root needed.
# Exit status 77: they cannot be had here, which it says.
set -u
dir=$1
release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-bookworm}")
packages="libc6-dev libgcc-s1 libevent-dev libjansson-dev libsystemd-dev libpcre2-dev libutf8proc-dev libxxhash-dev
    liburing-dev libinih-dev"

[ -e "$dir/complete" ] && exit 0
skip() {
    echo "cross-daemon: skipped, $*"
    exit 77
}
command -v apt-get >/dev/null && command -v dpkg >/dev/null || skip "there is no apt here to fetch arm64 packages with"
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/root" || exit 1
dir=$(cd "$dir" && pwd)
touch "$dir/apt/status"
cat >"$dir/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Sandbox::User "";
Dir::State "$dir/apt";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt/cache";
END
export APT_CONFIG=$dir/apt.conf DEBIAN_FRONTEND=noninteractive
apt-get update -qq >"$dir/log" 2>&1
# shellcheck disable=SC2086 # the list is words
apt-get install -d -y -qq --no-install-recommends $packages >>"$dir/log" 2>&1 ||
    skip "the arm64 packages of $release cannot be had (see $dir/log)"
for package in "$dir"/apt/cache/archives/*.deb; do
    dpkg -x "$package" "$dir/root" || exit 1
done
rm -rf "$dir/apt"
touch "$dir/complete"
