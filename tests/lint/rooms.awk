# Reads "path:line:#include \"header\"" lines and prints every include that
# tests/lint/rooms does not allow.  A room includes its own sub-folders freely.
function room(path) {
    while (!(path in known))
        if (!sub("/[^/]*$", "", path))
            return ""
    return path
}
BEGIN {
    while ((getline line < ROOMS) > 0)
        if (line !~ /^(#|[ \t]*$)/) {
            n = split(line, f, /:?[ \t]+|:$/)
            known[f[1]]
            for (i = 2; i <= n; i++)
                if (f[i] != "") {
                    may[f[1], f[i]]
                    if (f[i] != "*" && !(f[i] in known)) {
                        print ROOMS ": " f[1] " names " f[i] ", which stands below it"; bad = 1
                    }
                }
        }
}
{
    split($0, at, ":"); split($0, q, "\"")
    if (q[2] ~ /^gen\//) next
    from = room(at[1]); to = room(q[2])
    if (from == to && from != "") next
    if (to == "")
        print at[1] ":" at[2] ": \"" q[2] "\" is in no room"
    else if (!((from, to) in may) && !((from, "*") in may))
        print at[1] ":" at[2] ": " from " may not include " to
    else next
    bad = 1
}
END { exit bad }
