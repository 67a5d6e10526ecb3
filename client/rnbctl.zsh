#compdef rnbctl
# zsh completion of rnbctl: verbs, options and models as the program itself knows them.

_rnbctl_ask() {
    local -a call=($words[1])
    local at=${words[(ie)--socket]}

    (( at < CURRENT )) && call+=(--socket $words[at+1])
    $call "$@" 2>/dev/null
}

_rnbctl_models() {
    local -a models=(${(f)"$(_rnbctl_ask complete models)"})

    (( $#models )) && compadd -- $models
}

_rnbctl() {
    local verb='' i
    local -a list

    for (( i = 2; i < CURRENT; i++ )); do
        case $words[i] in
        --socket) (( i++ )) ;;
        -*) ;;
        *) verb=$words[i]; break ;;
        esac
    done
    case $words[CURRENT-1] in
    --socket) _files; return ;;
    --kv) compadd f16 q8_0 q4_0; return ;;
    esac
    if [[ -z $verb ]]; then
        list=(${(f)"$(_rnbctl_ask complete verbs)"})
        _describe -t verbs verb list
        compadd -- --socket --json --version --help
    elif [[ $words[CURRENT] == -* ]]; then
        compadd -- --json --help ${(f)"$(_rnbctl_ask help $verb | sed -n 's/^  \(--[a-z-]*\).*/\1/p')"}
    else
        case $verb in
        run|chat|load|show|verify|plan|bench) _rnbctl_models; _files -g '*.gguf' ;;
        unload) _rnbctl_models ;;
        budget) compadd -S '' ram= ;;
        cancel) compadd -- ${(f)"$(_rnbctl_ask requests | awk 'NR > 1 { print $1 }')"} ;;
        config) [[ $words[CURRENT-1] == check ]] && _files || compadd check ;;
        complete) compadd verbs models ;;
        help)
            list=(${(f)"$(_rnbctl_ask complete verbs)"})
            _describe -t verbs verb list ;;
        esac
    fi
}

_rnbctl "$@"
