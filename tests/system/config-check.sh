#!/bin/bash
# --check-config names file and line, --print-config what is in force; drop-ins and the command line win in their order.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

wrong() { # wrong LINE-NUMBER PART, with the file from stdin
    cat >"$T/rnbd.conf"
    expect 2 rnbd --config "$T/rnbd.conf" --check-config
    has "$ERR" "rnbd.conf:$1:"
    has "$ERR" "$2"
    one_sentence "$ERR"
}

wrong 2 "no key 'nonsense'" <<<$'[http]\nnonsense = 1'
wrong 2 'needs a name' <<<$'[model]\nfile = /x'
wrong 3 'yes nor no' <<<$'[model a]\nfile = /x\npin = perhaps'
wrong 2 'whole number' <<<$'[compute]\nthreads = -1'
wrong 2 'whole number' <<<$'[compute]\nthreads = 99999999999999999999'
wrong 2 'none of error' <<<$'[daemon]\nlog_level = loud'
wrong 2 "'20 parsecs'" <<<$'[daemon]\nstop_timeout = 20 parsecs'
wrong 2 '200%' <<<$'[memory]\nram = 200%'
wrong 2 'more than 0' <<<$'[memory]\nram = 0'
wrong 2 'more than 0' <<<$'[http]\nconnections = 0'
wrong 2 'none of auto' <<<$'[compute]\ncpu = avx9000'
wrong 2 'ADDRESS:PORT' <<<$'[http]\nlisten = 127.0.0.1:99999'
wrong 2 "'lots'" <<<$'[memory]\nram = lots'
wrong 2 'whole number' <<<$'[control]\nmode = 999'
wrong 2 'kv' <<<$'[model a]\nkv = f64'
wrong 2 '' <<<$'[http]\nthis is no line'
wrong 1 '' <<<$'[http'
expect 2 rnbd --config "$T/nowhere.conf" --check-config
has "$ERR" nowhere.conf
printf '[model a]\nctx = 5\n' >"$T/rnbd.conf"
expect 2 rnbd --config "$T/rnbd.conf" --check-config
has "$ERR" 'names no file'
head -c 100000 /dev/urandom >"$T/rnbd.conf"
expect 2 rnbd --config "$T/rnbd.conf" --check-config

printf '[http]\nconnections = 3\n' >"$T/rnbd.conf"
expect 0 rnbctl config check "$T/rnbd.conf"
has "$OUT" 'is fine'
expect 0 rnbd --config "$T/rnbd.conf" --check-config
has "$OUT" "$T/rnbd.conf"
mkdir "$T/conf.d"
printf '[http]\nconnections = 4\n' >"$T/conf.d/10-a.conf"
printf '[http]\nconnections = 5\n[compute]\nthreads = 1\n' >"$T/conf.d/20-b.conf"
printf 'nonsense' >"$T/conf.d/ignored.txt"
expect 0 rnbd --config "$T/rnbd.conf" --print-config --threads 2
has "$OUT" 'connections = 5'
has "$OUT" 'threads = 2'
printf 'oops\n' >"$T/conf.d/30-c.conf"
expect 2 rnbd --config "$T/rnbd.conf" --check-config
has "$ERR" '30-c.conf:1:'
rm -r "$T/conf.d"

# What is printed can be read again, and says the same.
rnbd --config "$T/rnbd.conf" --print-config >"$T/printed.conf"
rnbd --config "$T/printed.conf" --print-config >"$T/again.conf"
diff <(tail -n +2 "$T/printed.conf") <(tail -n +2 "$T/again.conf") || fail "--print-config does not read back"
expect 0 rnbd --config "$HERE/../../config/rnbd.conf" --check-config
expect 0 rnbd --config "$HERE/../../config/models.d/example.conf" --check-config

expect 2 rnbd --nonsense
has "$ERR" "no option '--nonsense'"
one_sentence "$ERR"
expect 2 rnbd --ram
has "$ERR" 'needs a value'
expect 2 rnbd --ram lots
has "$ERR" '--ram'
expect 2 rnbd --vram 1GiB
has "$ERR" '--vram'
expect 2 rnbd model.gguf
has "$ERR" '--model NAME=FILE'
expect 2 rnbd --model nofile
has "$ERR" 'NAME=FILE'
expect 2 rnbd -x
expect 2 rnbd --cpu avx9000 --check-config
has "$ERR" '--cpu'
expect 0 rnbd --version
has "$OUT" rnbd
expect 0 rnbd --help
has "$OUT" '--check-config'
finish
