#!/bin/sh
# Runs go test with the arguments: a line for each package, and at the end what failed,
# with all that it printed, and what was skipped. go test itself hides a skipped test.
# Where gotestsum cannot be fetched, go test -v tells the same among all else.
set -eu

gotestsum=gotest.tools/gotestsum@v1.13.0
if go run "$gotestsum" --version >/dev/null; then
  exec go run "$gotestsum" --format=pkgname -- "$@"
fi
exec go test -v "$@"
