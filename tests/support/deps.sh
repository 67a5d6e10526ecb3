#!/bin/sh
# deps.sh LEVEL: installs the Debian packages that are missing.  Levels: build (to build and run), check (and to test),
# ci (and to lint, fuzz and cross build).  Without root, or offline, it names what is missing and the command to type.
set -u
level=${1:-build}
build="gcc make pkg-config libevent-dev libjansson-dev libsystemd-dev libpcre2-dev libutf8proc-dev libxxhash-dev liburing-dev libinih-dev"
demo="curl ca-certificates python3 python3-pip unzip"
check="check curl python3 strace"
ci="clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev cppcheck shellcheck mandoc gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
case $level in
    build) want=$build ;;
    demo) want="$build $demo" ;;
    check) want="$build $check" ;;
    ci) want="$build $check $ci" ;;
    *) echo "deps: there is no level '$level'" >&2; exit 2 ;;
esac
missing=
for package in $want; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
        "install ok installed") ;;
        *)
            # A program from elsewhere will do as well as Debian's.
            case $package in
                gcc | make | curl | python3 | unzip) command -v "$package" >/dev/null && continue ;;
                python3-pip) python3 -m pip --version >/dev/null 2>&1 && continue ;;
            esac
            missing="$missing $package"
            ;;
    esac
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "deps: these Debian packages are needed, or what corresponds to them here:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "deps: packages are missing and only root can install them; type: sudo apt-get install$missing" >&2
    exit 1
fi
echo "deps: installing$missing"
# shellcheck disable=SC2086 # the list is words
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
    echo "deps: apt-get could not install$missing; without a network they have to come from elsewhere" >&2
    exit 1
fi
