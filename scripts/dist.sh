#!/bin/bash
# Builds what is released, into dist/: a static binary for each system and processor, and
# SHA256SUMS. The same commit and version give the same bytes with the same version of Go,
# wherever the tree is.
#
#   scripts/dist.sh                  0.1.0 at the commit of this tree
#   VERSION=0.1.1 scripts/dist.sh
#   PLATFORMS="linux/amd64" scripts/dist.sh
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=${VERSION:-0.1.0}
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
OUT=${OUT:-dist}

if [ -n "$(git status --porcelain)" ] && [ "${CHANGED:-}" != yes ]; then
  echo "dist: the tree has changes that no commit has (CHANGED=yes builds it nevertheless)" >&2
  exit 1
fi
info=koine/cmd/koine/internal/buildinfo
flags="-s -w -buildid= -X $info.version=$VERSION -X $info.commit=$(git rev-parse HEAD) -X $info.date=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)"
rm -rf "$OUT"
mkdir -p "$OUT"
names=()
for platform in $PLATFORMS; do
  name=koine-$VERSION-${platform%/*}-${platform#*/}
  echo "$name" >&2
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} GOFLAGS= GOAMD64=v1 GOARM64=v8.0 \
    go build -trimpath -buildvcs=false -ldflags "$flags" -o "$OUT/$name" ./cmd/koine
  names+=("$name")
done
(cd "$OUT" && sha256sum "${names[@]}" >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
cat "$OUT/SHA256SUMS"
