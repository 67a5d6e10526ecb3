# Prints the folders of ROOM and of every room it may include, transitively.
# Whoever reaches backends also links the CPU backend, which backends lists.
/^(#|[ \t]*$)/ { next }
{
    n = split($0, f, /:?[ \t]+|:$/)
    for (i = 2; i <= n; i++)
        if (f[i] != "")
            needs[f[1]] = needs[f[1]] " " f[i]
}
function visit(r,   k, part, i) {
    if (r in seen)
        return
    seen[r]
    print r
    if (r == "backends")
        visit("backends/cpu")
    k = split(needs[r], part, " ")
    for (i = 1; i <= k; i++)
        visit(part[i])
}
END { visit(ROOM) }
