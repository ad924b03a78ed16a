#!/bin/sh
# What access per graph adds to reads, what it costs to find out who is calling,
# and the reads beside their twins: ten rounds in turns, compared by benchstat.
# It takes some five minutes and wants a quiet machine; processor time (cpu-ns)
# is told beside elapsed time for when it is not. BENCH_ROUNDS=3 makes it shorter.
set -eu
cd "$(dirname "$0")/.."

BENCHSTAT=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
rounds=${BENCH_ROUNDS:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/policy" ./internal/policy
go test -c -o "$work/auth" ./internal/auth
go test -c -o "$work/kg" ./kg
go test -c -o "$work/graph" ./graph
run() { # PACKAGE BENCHMARKS BENCHTIME
	(cd "$1" && "$work/$(basename "$1")" -test.run '^$' -test.bench "$2" -test.benchtime "$3" -test.benchmem)
}

round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	run internal/policy BenchmarkAccess 5x >>"$work/access.txt"
	run internal/auth BenchmarkAdmit 1000x >>"$work/admit.txt"
done
echo "== Access: columns are none, 1 policy, 100 policies"
go run $BENCHSTAT -col /access "$work/access.txt"
echo "== Who is calling"
go run $BENCHSTAT "$work/admit.txt"
# These take turns with their twins themselves.
echo "== Reads beside their twins, $rounds rounds: ratio is the rate beside the twin's"
run kg '^Benchmark(Subject|TwoHops)$' "${rounds}x" | grep ^Benchmark || echo "skipped: the film graph is not there"
run graph '^Benchmark(Entities|Nested|Match)$' "${rounds}x" | grep ^Benchmark
