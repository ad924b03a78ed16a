#!/bin/sh
# Runs every fuzz target for a while: scripts/fuzz.sh 30s
set -eu
cd "$(dirname "$0")/.."

for package in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
    echo "$package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}" "$package"
  done
done
