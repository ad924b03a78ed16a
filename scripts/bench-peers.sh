#!/bin/bash
# Measures koine beside its peers, each in a process of its own, sides in turns within a run:
# JetStream over TCP, a bare SSE server, an echo of net/http, bare Badger with the same keys.
# Prints a row for each measure. It wants a machine with nothing else to do, and about
# 50 minutes, with the large stores three hours.
#
#   scripts/bench-peers.sh                      all rows
#   scripts/bench-peers.sh reads memory         some of them
#   scripts/bench-peers.sh --with virtuoso,dgraph
#                                               reads also beside servers that are installed
#   BENCH_SCALE=0.1 scripts/bench-peers.sh      a tenth of each, to see that it runs
set -euo pipefail
cd "$(dirname "$0")/.."

SCALE=${BENCH_SCALE:-1}
rows="reads badger messages steady fanout memory start load large"

# times N is N by the scale, at least 1.
times() { awk -v n="$1" -v s="$SCALE" 'BEGIN { n = int(n * s); print n < 1 ? 1 : n }'; }
bench() { go test -run '^$' -timeout 2h "$@"; }

# One entity over HTTP by 16 clients, beside an echo; films and two hops, beside bare Badger.
row_reads() {
  bench -bench OneEntity -benchtime "$(times 60)x" ./a2a &&
    bench -bench Reads -benchtime "$(times 20)x" ./internal/readbench -koine "this=$work/koine" -with "$with"
}
# Subjects, hops, loads and updates, beside Badger with the same keys.
row_badger() { (cd kg && bench -bench 'BulkLoad|OnlineLoad|Updates|Subject|TwoHops' -benchtime "$(times 10)x" .); }
# Durable messages over the network, beside JetStream with a sync for each.
row_messages() { (cd internal/jetstreambench && KOINE_BINARY=$work/koine bench -bench PublishNetwork -benchtime "$(times 10)x" .); }
# Messages while memory is written out as fast as it is filled: processor time, bytes written to
# the volume.
row_steady() { bench -bench Messages -benchtime "$(times 3)x" ./cmd/koine; }
# One event to thousands of streams, beside a bare SSE server; memory of an open stream at rest.
row_fanout() { bench -bench FanOut -benchtime "$(times 100)x" ./internal/fanoutbench -streams "$(times 5000)" -settle 25s -koine "this=$work/koine"; }
# Resident memory at rest, under publishing, and after it, with the default and with 256M.
row_memory() { go test ./cmd/koine -run '^TestMemory$' -count=1 -v -timeout 1h -memory.for "$(times 600)s"; }
# From the start of the process to the first answer.
row_start() { bench -bench Start -benchtime "$(times 5)x" ./cmd/koine -start.messages "$(times 100000)"; }
# Bytes on the volume beside those of the file, time and memory of a load.
row_load() {
  "$work/koine" bench generate --statements "$(times 1000000)" >"$work/graph.nq" &&
    /usr/bin/time -f '%e s, %M KiB at the most, user %U s, system %S s' "$work/koine" load --quiet --data "$work/data" "$work/graph.nq" &&
    du -sb "$work/graph.nq" "$work/data"
}
# 30 million statements with 5 million messages beside a thirtieth: start, point reads, check, backup,
# a week of history removed. 15 GiB, two hours.
row_large() { bench -bench LargeStore -benchtime 1x ./cmd/koine -large.statements "$(times 30000000)" -large.messages "$(times 5000000)" -large.history "$(times 1000000)"; }

with=""
if [ "${1:-}" = --with ]; then
  with=${2:?--with needs the names of servers, by commas}
  shift 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for wanted in "$@"; do
  case " $rows " in *" $wanted "*) ;; *)
    echo "there is no row $wanted; the rows are: $rows" >&2
    exit 2 ;;
  esac
done
go build -o "$work/koine" ./cmd/koine
export KOINE_BINARY=$work/koine
failed=""
for row in $rows; do
  if [ $# -gt 0 ] && [[ " $* " != *" $row "* ]]; then continue; fi
  printf '\n== %s (%s)\n' "$row" "$(date +%T)"
  "row_$row" || failed+=" $row" # a failed row does not stop the others
done
if [ -n "$failed" ]; then
  echo "these rows failed:$failed" >&2
  exit 1
fi
