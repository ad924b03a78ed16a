#!/bin/sh
# Compares the third-party code that is changed with its original and the patch beside
# it. With "write" it makes the patch anew.
set -eu
cd "$(dirname "$0")/../internal/third_party"

original=$(cd / && GOFLAGS=-mod=mod go mod download -json github.com/dgraph-io/badger/v4@v4.9.6 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
now=$(mktemp)
trap 'rm -f "$now"' EXIT
for file in $(cd badger && find . -name '*.go' | LC_ALL=C sort); do
  diff -uN --label "a/$file" --label "b/$file" "$original/$file" "badger/$file" >>"$now" || [ $? -eq 1 ]
done
if [ "${1:-}" = write ]; then
  cat "$now" >badger.patch
elif ! cmp -s "$now" badger.patch; then
  echo "internal/third_party/badger is not v4.9.6 with badger.patch: see its README.md" >&2
  exit 1
fi
