# fish completion of rnbctl: verbs, options and models as the program itself knows them.

function __rnbctl_words
    commandline -opc
end

# The verb on the command line, nothing while there is none.
function __rnbctl_verb
    set -l skip 0
    for word in (__rnbctl_words)[2..-1]
        if test $skip = 1
            set skip 0
        else if test "$word" = --socket
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
            return 0
        end
    end
    return 1
end

function __rnbctl_ask
    set -l all (__rnbctl_words)
    set -l call $all[1]
    set -l at (contains -i -- --socket $all)
    and set call $call --socket $all[(math $at + 1)]
    $call $argv 2>/dev/null
end

function __rnbctl_verbs
    __rnbctl_ask complete verbs | string replace ':' \t
end

function __rnbctl_options
    __rnbctl_ask help (__rnbctl_verb) | string replace -rf '^  (--[a-z-]+)( [A-Z]+)? +(.*)' '$1\t$3'
    printf '%s\t%s\n' --json 'what the daemon answered' --help 'what the verb takes'
end

function __rnbctl_is
    contains -- (__rnbctl_verb) $argv
end

complete -c rnbctl -f
complete -c rnbctl -n 'not __rnbctl_verb' -l socket -r -F -d 'control socket'
complete -c rnbctl -n 'not __rnbctl_verb' -l json -d 'what the daemon answered'
complete -c rnbctl -n 'not __rnbctl_verb' -l version -d version
complete -c rnbctl -n 'not __rnbctl_verb' -l help -d 'the verbs'
complete -c rnbctl -n 'not __rnbctl_verb' -a '(__rnbctl_verbs)'
complete -c rnbctl -n '__rnbctl_verb; and string match -q -- "-*" (commandline -ct)' -a '(__rnbctl_options)'
complete -c rnbctl -n '__rnbctl_is run chat load show verify plan bench' -F
complete -c rnbctl -n '__rnbctl_is run chat load unload show verify plan bench' -a '(__rnbctl_ask complete models)'
complete -c rnbctl -n '__rnbctl_is load plan' -l kv -x -a 'f16 q8_0 q4_0'
complete -c rnbctl -n '__rnbctl_is budget' -a 'ram='
complete -c rnbctl -n '__rnbctl_is cancel' -a '(__rnbctl_ask requests | awk "NR > 1 { print \$1 }")'
complete -c rnbctl -n '__rnbctl_is config' -a check -F
complete -c rnbctl -n '__rnbctl_is complete' -a 'verbs models'
complete -c rnbctl -n '__rnbctl_is help' -a '(__rnbctl_verbs)'
