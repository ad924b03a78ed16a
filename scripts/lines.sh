#!/bin/sh
# Prints the number of hand-written lines of Go without tests: of the work tree, or of a
# commit. internal/housestyle says which files count.
#
#	scripts/lines.sh             # now
#	scripts/lines.sh cf518e5     # 117075
set -eu
cd "$(dirname "$0")/.."

exec go run ./internal/housestyle -lines ${1:+-at "$1"}
