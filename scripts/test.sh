#!/bin/sh
# Runs all tests, after installing what they need beyond Go (Chromium, shells, and node
# packages for the playground and the GraphQL clients). Arguments go to go test:
# scripts/test.sh -race
# KOINE_GO_TEST is what runs the tests in place of go test.
set -eu
cd "$(dirname "$0")/.."

scripts/install-test-tools.sh
npm --silent --prefix web test
exec ${KOINE_GO_TEST:-go test} "$@" ./...
