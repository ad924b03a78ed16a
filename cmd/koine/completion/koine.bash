# Completion of koine's command line for bash: source <(koine completion bash)

_koine() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" complete --shell bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  # A word that ends with = goes on with the value.
  if [ "${#COMPREPLY[@]}" -eq 1 ] && [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace
  fi
}

# Where koine names nothing, file names are completed.
complete -o bashdefault -o default -F _koine koine
