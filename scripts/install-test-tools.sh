#!/bin/sh
# Installs what the tests need beyond Go: Chromium, curl, zsh and fish, rapper (which
# writes RDF/XML), Python with httpx, and the node packages of the playground, of the GraphQL and A2A
# clients, of MCP, of the program in examples/typescript, and of the GraphQL and SPARQL engines that
# koine is compared with.
# Says nothing and changes nothing when all of it is there. Needs node >= 20.19 and
# npm; installs the rest with apt, for which it must be root or may use sudo.
set -eu
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# quietly runs a command and shows what it said only if it fails.
quietly() {
  "$@" >"$log" 2>&1 || {
    status=$?
    cat "$log" >&2
    echo "failed: $*" >&2
    exit "$status"
  }
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# debian COMMAND PACKAGE… installs the packages if the command is missing.
debian() {
  command=$1
  shift
  command -v "$command" >/dev/null && return
  echo "installing $*"
  quietly as_root apt-get update
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}
debian chromium chromium
debian curl curl ca-certificates
debian zsh zsh
debian fish fish
debian rapper raptor2-utils
debian python3 python3
/usr/bin/python3 -c 'import httpx' 2>/dev/null || {
  echo "installing python3-httpx"
  quietly as_root apt-get update
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-httpx
}

for tool in node npm; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing: install Node.js 20.19 or newer" >&2
    exit 1
  fi
done

# npm writes node_modules/.package-lock.json last: newer than the lock file, it says
# that the packages are those of the lock file.
for directory in web graph/transport/clients graph/sparql graph/reference a2a/clients internal/dialect/modelcontext/clients examples/typescript; do
  if ! [ "$directory/node_modules/.package-lock.json" -nt "$directory/package-lock.json" ]; then
    echo "installing the node packages of $directory/"
    quietly npm --prefix "$directory" ci --ignore-scripts --no-audit --no-fund
    touch "$directory/node_modules/.package-lock.json"
  fi
done
