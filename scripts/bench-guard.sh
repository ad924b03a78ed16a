#!/bin/bash
# Compares the processor time of this tree with that of the base build, row by row,
# and fails if a row is more than 5 % worse (benchstat, p < 0.05). It takes 15 to 20
# minutes and wants a machine with nothing else to do.
#
#   scripts/bench-guard.sh             this tree beside the base
#   BENCH_ROUNDS=3 scripts/bench-guard.sh
#   BENCH_ALLOW="UpdateManyIndexed=12" …      a row that pays for something: at most 12 % worse
set -euo pipefail
cd "$(dirname "$0")/.."

BENCHSTAT=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BASE=cf518e5 # the one base of all comparisons: not the change before this one
LIMIT=5      # percent
# The index of texts has every literal of a load; the rows of updates and messages pay for it too.
ALLOW=${BENCH_ALLOW:-LoadIndexed=25}

git cat-file -e "$BASE^{commit}" 2>/dev/null || {
  echo "bench-guard: commit $BASE is not in this clone: fetch the whole history (git fetch --unshallow)" >&2
  exit 2
}
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$BASE"
(cd "$work/base" && go build -o "$work/koine-base" ./cmd/koine)
go build -o "$work/koine-head" ./cmd/koine
go build -o "$work/benchguard" ./internal/benchguard
"$work/benchguard" -base "$work/koine-base" -head "$work/koine-head" -out "$work" -rounds "${BENCH_ROUNDS:-8}" -scale "${BENCH_SCALE:-1}"

go run $BENCHSTAT "$work/base.txt" "$work/head.txt"
go run $BENCHSTAT -format csv "$work/base.txt" "$work/head.txt" 2>/dev/null |
  awk -F, -v limit="$LIMIT" -v allow="$ALLOW" '
    BEGIN { n = split(allow, pairs, " "); for (i = 1; i <= n; i++) { split(pairs[i], kv, "="); allowed[kv[1]] = kv[2] } }
    $6 ~ /^[+-]/ && $1 != "geomean" {
      name = $1; sub(/-[0-9]+$/, "", name); worse = $6; sub(/%/, "", worse); rows++
      bound = name in allowed ? allowed[name] : limit
      if (worse + 0 > bound + 0) { printf "bench-guard: %s takes %s more processor time than the base, the bound is %s %% (%s)\n", name, $6, bound, $7; failed = 1 }
    }
    $6 == "~" { rows++ }
    END { if (rows < 12) { print "bench-guard: " rows + 0 " rows were compared, want at least 12"; failed = 1 } exit failed }'
echo "bench-guard: no row is more than $LIMIT % worse than $BASE, but for $ALLOW"
