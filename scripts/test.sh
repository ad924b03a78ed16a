#!/bin/sh
# Runs all tests, after installing what they need beyond Go (Chromium, shells, and node
# packages for the playground and the GraphQL clients). Arguments go to go test:
# scripts/test.sh -race
set -eu
cd "$(dirname "$0")/.."

scripts/install-test-tools.sh
npm --silent --prefix web test
# The packages that take longest come first: a long one at the end would run alone.
exec scripts/go-test.sh "$@" ./kg ./cmd/koine ./channels ./...
