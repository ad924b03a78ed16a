#!/bin/bash
# Checks what `make dist` makes, for this machine's platform unless PLATFORMS says more: it is
# the same when it is built again in another place, its checksum fits and detects a change, it
# needs no library, and it says its version.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'git worktree remove --force "$work/elsewhere" 2>/dev/null || true; rm -rf "$work"' EXIT
export VERSION=9.9.9 PLATFORMS=${PLATFORMS:-$(go env GOOS)/$(go env GOARCH)} CHANGED=yes
git worktree add --quiet --detach "$work/elsewhere" HEAD
OUT=$work/one scripts/dist.sh >/dev/null
[ -n "$(git status --porcelain)" ] || {
  (cd "$work/elsewhere" && OUT=$work/two scripts/dist.sh >/dev/null)
  cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"
}
binary=$work/one/koine-$VERSION-$(go env GOOS)-$(go env GOARCH)
"$binary" version | grep -q "^koine $VERSION (commit $(git rev-parse HEAD), "
if [ "$(go env GOOS)" = linux ] && command -v ldd >/dev/null && ldd "$binary" >/dev/null 2>&1; then
  echo "check-dist: $binary is not static" >&2
  exit 1
fi
printf x >>"$binary"
if (cd "$work/one" && sha256sum --check --status SHA256SUMS); then
  echo "check-dist: a changed binary fits its checksum" >&2
  exit 1
fi
echo "the release builds for $PLATFORMS, reproducibly"
