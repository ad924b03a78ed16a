#!/bin/sh
# What takes longer than CI may, or needs what is not always reachable.
set -eu
cd "$(dirname "$0")/.."

# Kills, soaks, full volumes and interleavings, longer than CI has them.
KOINE_KG_KILLS=200 KOINE_KILLS=60 KOINE_HUB_KILLS=20 KOINE_SOAK=10m KOINE_RACES=2000 KOINE_FULL_VOLUMES=20 \
	KOINE_SPARQL_QUERIES=2000 scripts/test.sh -count=1 -timeout 3h

# Random JSON-LD documents, read by koine and by jsonld.js.
jsonldjs=$(mktemp -d)
trap 'rm -rf "$jsonldjs"' EXIT
npm install --silent --no-audit --no-fund --prefix "$jsonldjs" jsonld@8.3.3
KOINE_JSONLD_JS=$jsonldjs KOINE_JSONLD_DOCUMENTS=5000 go test -count=1 -run TestJSONLDAgainstJSONLDJS ./internal/rdf

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
