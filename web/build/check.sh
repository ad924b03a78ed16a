#!/bin/sh
# Builds the playground again and compares every byte with the committed output in dist/.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
npm run --silent build -- --logLevel warn --outDir "$fresh" --emptyOutDir
if ! diff -r dist "$fresh"; then
  echo "web/dist is not what web/ builds: run 'npm run build' in web/ and commit the result" >&2
  exit 1
fi
