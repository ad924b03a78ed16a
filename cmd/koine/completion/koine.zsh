#compdef koine
# Completion of koine's command line for zsh: source <(koine completion zsh), or this
# file as _koine in a directory of $fpath.

_koine() {
  local line
  local -a words_found lines_shown
  while IFS= read -r line; do
    words_found+=("${line%%$'\t'*}")
    lines_shown+=("${line/$'\t'/  -- }")
  done < <("${words[1]}" complete --shell zsh -- "${LBUFFER}" 2>/dev/null)
  if (( ${#words_found} == 0 )); then
    _files
  elif (( ${#words_found} == 1 )) && [[ ${words_found[1]} == *= ]]; then
    compadd -S '' -- "${words_found[@]}"
  else
    compadd -l -d lines_shown -- "${words_found[@]}"
  fi
}

if [ "$funcstack[1]" = "_koine" ]; then
  _koine "$@"
else
  compdef _koine koine
fi
