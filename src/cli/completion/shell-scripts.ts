/**
 * The scripts that connect a shell's completion with `postern complete`, which prints a line `value TAB description` for each
 * candidate, and `:files` if names of files fit. They are the same for every version of the commands.
 */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

const bash = `# Completion of postern for bash. Load it with: source <(postern completion bash)
_postern() {
  local line=\${COMP_LINE:0:COMP_POINT} whole prefix value is
  # Bash splits words at @, : and = too, and replaces only what comes after the last of them.
  whole=\${line##*[[:space:]]}
  prefix=\${whole%"\${whole##*[@:=]}"}
  local -a words
  eval "words=(\${line//[\\$\\\`();&|<>*?#!]/_})" 2>/dev/null || return
  [[ $line == *[[:space:]] ]] && words+=('')
  COMPREPLY=()
  while IFS=$'\\t' read -r value is; do
    if [[ $value == :files ]]; then
      compopt -o default 2>/dev/null
      return
    fi
    # Others choose some of the names: none of them may run as a command.
    printf -v value %q "$value"
    COMPREPLY+=("\${value#"$prefix"}")
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _postern postern
`;

const zsh = `#compdef postern
# Completion of postern for zsh. Load it with: source <(postern completion zsh)
_postern() {
  local -a values shown
  local value is
  while IFS=$'\\t' read -r value is; do
    if [[ $value == :files ]]; then
      _files
      return
    fi
    values+=("$value")
    shown+=("$value\${is:+  -- $is}")
  done < <("\${(Q)words[1]}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( \${#values} )) && compadd -l -d shown -a values
}
if [[ \${funcstack[1]} == _postern ]]; then _postern "$@"; else compdef _postern postern; fi
`;

const fish = `# Completion of postern for fish. Load it with: postern completion fish | source
function __postern_complete
    set -l words (commandline -opc)
    set -l now (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] "$now" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$now"
        else
            echo $line
        end
    end
end
complete -c postern -f -a '(__postern_complete)'
`;

export const shellScripts: Record<Shell, string> = { bash, zsh, fish };
