#!/bin/sh
# Compares the third-party code that is changed with its originals and the patches beside
# it. With "write" it makes the patches anew.
set -eu
cd "$(dirname "$0")/../internal/third_party"

now=$(mktemp)
trap 'rm -f "$now"' EXIT
for pair in badger=github.com/dgraph-io/badger/v4@v4.9.6 r3labs-sse=github.com/r3labs/sse/v2@v2.10.0; do
  name=${pair%%=*} module=${pair#*=}
  original=$(cd / && GOFLAGS=-mod=mod go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  : >"$now"
  for file in $(cd "$name" && find . -name '*.go' | LC_ALL=C sort); do
    diff -uN --label "a/$file" --label "b/$file" "$original/$file" "$name/$file" >>"$now" || [ $? -eq 1 ]
  done
  if [ "${1:-}" = write ]; then
    cat "$now" >"$name.patch"
  elif ! cmp -s "$now" "$name.patch"; then
    echo "internal/third_party/$name is not $module with $name.patch: see its README.md" >&2
    exit 1
  fi
done
