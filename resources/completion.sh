[ -z "$ZSH_VERSION" ] || { autoload -U +X bashcompinit && bashcompinit; }
_warploom() {
  local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=
  case ${COMP_WORDS[1]} in{{#commands}}
    {{name}}) words="--help --json --quiet{{!
}}{{#flags}}{{#dashes}} {{flag}}{{/dashes}}{{/flags}}" ;;{{/commands}}
  esac
  [ "$COMP_CWORD" = 1 ] && words="{{#commands}}{{name}} {{/commands}}--help --version"
  case "${COMP_WORDS[1]} $before" in{{#commands}}{{#flags}}{{#chosen}}
    '{{name}} {{flag}}') words="{{#among}}{{.}} {{/among}}" ;;{{/chosen}}{{/flags}}{{/commands}}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$now"))
}
complete -o default -F _warploom warploom
