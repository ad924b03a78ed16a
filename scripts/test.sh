#!/bin/sh
# Runs all tests, after installing what they need beyond Go (Chromium, shells, and node
# packages for the playground and the GraphQL clients). Arguments go to go test:
# scripts/test.sh -race
set -eu
cd "$(dirname "$0")/.."

scripts/install-test-tools.sh
npm --silent --prefix web test
exec scripts/go-test.sh "$@" ./...
