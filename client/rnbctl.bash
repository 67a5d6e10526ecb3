# bash completion of rnbctl: verbs, options and models as the program itself knows them.

_rnbctl()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    local verb='' words='' i
    local -a call=("${COMP_WORDS[0]}")

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --socket) call+=(--socket "${COMP_WORDS[i+1]}"); ((i++)) ;;
        -*) ;;
        *) verb=${COMP_WORDS[i]}; break ;;
        esac
    done
    COMPREPLY=()
    case $prev in
    --socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --kv) mapfile -t COMPREPLY < <(compgen -W 'f16 q8_0 q4_0' -- "$cur"); return ;;
    esac
    if [[ -z $verb ]]; then
        words='--socket --json --version --help '$("${call[@]}" complete verbs 2>/dev/null | cut -d: -f1)
    elif [[ $cur == -* ]]; then
        words="--json --help $("${call[@]}" help "$verb" 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')"
    else
        case $verb in
        run|chat|load|show|verify|plan|bench)
            words=$("${call[@]}" complete models 2>/dev/null)
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur"; compgen -f -X '!*.gguf' -- "$cur"; compgen -d -S / -- "$cur")
            [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
            return ;;
        unload) words=$("${call[@]}" complete models 2>/dev/null) ;;
        budget) words='ram='; compopt -o nospace ;;
        cancel) words=$("${call[@]}" requests 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
        config)
            [[ $prev == check ]] && { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return; }
            words=check ;;
        complete) words='verbs models' ;;
        help) words=$("${call[@]}" complete verbs 2>/dev/null | cut -d: -f1) ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _rnbctl rnbctl
