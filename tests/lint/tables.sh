#!/bin/sh
# tables.sh ROOT: what a table says must be said to people too.
#   every KEY of daemon/settings.def     in config/rnbd.conf, commented, and in config/rnbd.conf.5
#   every METHOD of common/methods.def   called by a verb of client/, or marked internal, and in client/rnbctl.1
#   every verb of client/                in client/rnbctl.1
#   every part of make check             made by .ci/run
#   every check-* of make help           in a README.md, which says when it is run
# A table or text that is not there yet asks for nothing.
cd "${1:-.}" || exit 1
bad=0

complain() {
    echo "$1"
    bad=1
}

quoted() {
    echo "$1" | sed 's/\./\\./g'
}

# keys: "section key" of each KEY row.
keys() {
    sed -n 's/^KEY(\([a-z0-9_]*\), *\([a-z0-9_]*\),.*/\1 \2/p' daemon/settings.def
}

# methods: the name of each METHOD row that is not marked internal.
methods() {
    sed -n '/internal/d; s/^METHOD("\([a-z._]*\)",.*/\1/p' common/methods.def
}

# in_section FILE SECTION KEY: the key, set or commented out, below its "[section]" (or "#[section]").
in_section() {
    awk -v section="$2" -v key="$3" '
        { sub(/^#[ \t]*/, "") }
        /^\[/ { name = $0; gsub(/^\[[ \t]*|[ \t].*$|\].*$/, "", name); next }
        name == section && $1 == key && $2 == "=" { found = 1 }
        END { exit !found }' "$1"
}

# in_page SECTION KEY: an item of that name below ".Ss section" of the manual page.
in_page() {
    awk -v section="$1" -v key="$2" '
        $1 == ".Ss" { name = $2 }
        name == section && $1 == ".It" && $3 == key { found = 1 }
        END { exit !found }' config/rnbd.conf.5
}

if [ -f daemon/settings.def ]; then
    [ -n "$(keys)" ] || complain "daemon/settings.def: no KEY row was understood"
    twice=$(keys | sort | uniq -d)
    [ -z "$twice" ] || complain "daemon/settings.def: stands there twice: $twice"
    while read -r section key; do
        [ -n "$key" ] || continue
        if [ -f config/rnbd.conf ] && ! in_section config/rnbd.conf "$section" "$key"; then
            complain "config/rnbd.conf: [$section] $key of daemon/settings.def is missing"
        fi
        if [ -f config/rnbd.conf.5 ] && ! in_page "$section" "$key"; then
            complain "config/rnbd.conf.5: no '.It Ic $key' below '.Ss $section'"
        fi
    done <<EOF
$(keys)
EOF
fi

if [ -f common/methods.def ]; then
    [ -n "$(methods)" ] || complain "common/methods.def: no METHOD row was understood"
    while read -r name; do
        [ -n "$name" ] || continue
        if ls client/*.c >/dev/null 2>&1 && ! grep -qE "[\" ]$(quoted "$name")[\" ]" client/*.c; then
            complain "client: no verb calls $name of common/methods.def; add one or mark it internal"
        fi
        if [ -f client/rnbctl.1 ] && ! grep -qF "$name" client/rnbctl.1; then
            complain "client/rnbctl.1: $name of common/methods.def is not named"
        fi
    done <<EOF
$(methods)
EOF
fi

# Completion asks the program for its verbs, so it has them all; the page is written by hand.
if ls client/*.c >/dev/null 2>&1 && [ -f client/rnbctl.1 ]; then
    while read -r verb; do
        [ -n "$verb" ] || continue
        grep -qE "^\.It [A-Z][a-z] $verb( |\$)" client/rnbctl.1 ||
            complain "client/rnbctl.1: no '.It Ic $verb' for the verb"
    done <<EOF
$(sed -n 's/^const struct verb verb_[a-z_]* = {"\([a-z-]*\)".*/\1/p' client/*.c)
EOF
fi

if [ -f .ci/run ] && [ -f Makefile ]; then
    for part in $(sed -n 's/^check_parts := //p' Makefile); do
        grep -qE "(^| )$part( |\$)" .ci/run || complain ".ci/run: $part, a part of make check, is not made"
    done
    for target in $(sed -n 's/^\(check-[a-z-]*\):.*##.*/\1/p' Makefile tests/*/rules.mk); do
        grep -qE "make $target([^a-z-]|\$)" README.md daemon/*/README.md backends/*/README.md ||
            complain "README.md: make $target is not named"
    done
fi

[ "$bad" -eq 0 ]
