#!/bin/sh
# What takes longer than CI may, or needs what is not always reachable.
set -eu
cd "$(dirname "$0")/.."

# Kills, soaks, full volumes and interleavings, longer than CI has them.
KOINE_KG_KILLS=200 KOINE_KILLS=60 KOINE_HUB_KILLS=20 KOINE_SOAK=10m KOINE_RACES=2000 KOINE_FULL_VOLUMES=20 \
	KOINE_SPARQL_QUERIES=2000 KOINE_GRAPHQL_DOCUMENTS=200000 scripts/test.sh -count=1 -timeout 3h

# AgentChat and OpenIntent beside their twins: what they measure is in docs/benchmarks.md.
go test ./cmd/koine -run '^$' -bench 'ChatSockets|Dialects' -benchtime 100x -timeout 30m

# A large store beside a smaller one: start, reads, check, backup, retention.
go test ./cmd/koine -run '^$' -bench LargeStore -benchtime 1x -large.statements 3000000 -large.messages 200000 -large.history 200000 -timeout 2h

# Random JSON-LD documents, read by koine and by jsonld.js, and 20,000 damaged ones.
jsonldjs=$(mktemp -d)
trap 'rm -rf "$jsonldjs"' EXIT
npm install --silent --no-audit --no-fund --prefix "$jsonldjs" jsonld@8.3.3
KOINE_JSONLD_JS=$jsonldjs KOINE_JSONLD_DOCUMENTS=5000 go test -count=1 -run "TestJSONLDAgainstJSONLDJS|TestJSONLDDamaged" ./internal/rdf

# Statements in and out in every format: a social network, and the film graph and a release
# of schema.org (data/releases/30.0 of its repository) where they are.
scripts/round-trips.sh "${KOINE_ROUND_TRIPS:-1000000}"
if [ -n "${KOINE_FILMS:-}" ]; then
	scripts/round-trips.sh "$KOINE_FILMS"
else
	echo "NOT RUN: round trips of the film graph, which KOINE_FILMS names (gzipped N-Quads)" >&2
fi
if [ -n "${KOINE_SCHEMAORG:-}" ]; then
	all=$KOINE_SCHEMAORG/schemaorg-all-https
	scripts/round-trips.sh -g "https://schema.org/$(basename "$KOINE_SCHEMAORG")" "$all.nq" "$all.nt" "$all.ttl" "$all.jsonld" "$all.rdf"
else
	echo "NOT RUN: round trips of schema.org, of which KOINE_SCHEMAORG names a release" >&2
fi

# Known vulnerabilities of what is linked. The database is at https://vuln.go.dev, or
# where GOVULNDB says.
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.1.4
database=${GOVULNDB:-https://vuln.go.dev}
case $database in
file:*) ;;
*)
	if ! curl -fsS -m 30 -o /dev/null "$database/index/db.json"; then
		echo "NOT CHECKED: the vulnerability database at $database cannot be reached from here." >&2
		echo "Run make nightly where it can be, or name a copy with GOVULNDB=file:///…" >&2
		exit 1
	fi
	;;
esac
go run "$GOVULNCHECK" -db "$database" ./...
