#!/bin/sh
# Takes statements in and out in every format, and compares with koine diff: equal up to
# blank nodes.
#
#   scripts/round-trips.sh [-g GRAPH] 100000          a social network of so many statements
#   scripts/round-trips.sh [-g GRAPH] FILE [FORM…]    an RDF file; each FORM must hold the same
#
# GRAPH is the only graph of FILE, if it names one: formats without graphs are exported
# from it and loaded into it. Nobody but rapper (Debian's raptor2-utils) writes RDF/XML
# here; without it RDF/XML is not run. KOINE is the program, which is built otherwise.
set -eu

graph=
if [ "${1:-}" = -g ]; then
	graph=$2
	shift 2
fi
if [ $# -eq 0 ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
koine=${KOINE:-$work/koine}
if [ -z "${KOINE:-}" ]; then
	(cd "$(dirname "$0")/.." && go build -o "$koine" ./cmd/koine)
fi

source=$1
shift
if [ ! -e "$source" ]; then
	"$koine" bench generate --statements "$source" >"$work/generated.nq"
	source=$work/generated.nq
fi
"$koine" load --quiet --data "$work/in" "$source"
echo "$("$koine" export --data "$work/in" --format nquads | wc -l) statements of $(basename "$source")"

# compare NAME FILE [FLAG…] loads the file and compares its statements with the source's.
compare() {
	name=$1 file=$2
	shift 2
	"$koine" load --quiet --data "$work/out" "$@" "$file"
	if ! "$koine" diff --no-assertions --max-blank 10000000 "$work/in" "$work/out" >"$work/differences" 2>"$work/notes"; then
		echo "$name: NOT EQUAL" >&2
		head -20 "$work/differences" "$work/notes" >&2
		exit 1
	fi
	if [ -s "$work/differences" ] || grep -q label "$work/notes"; then
		echo "$name: the comparison is not sure" >&2
		cat "$work/differences" "$work/notes" >&2
		exit 1
	fi
	echo "$name: equal"
	rm -rf "$work/out" "$work/differences"
}

for form in "$@"; do
	compare "$(basename "$form")" "$form" ${graph:+--graph "$graph"}
done
for format in nquads trig jsonld; do
	"$koine" export --data "$work/in" --format $format >"$work/export"
	compare $format "$work/export" --format $format
done
for format in turtle ntriples; do
	"$koine" export --data "$work/in" --format $format ${graph:+--graph "$graph"} >"$work/export"
	compare $format "$work/export" --format $format ${graph:+--graph "$graph"}
done
if command -v rapper >/dev/null; then
	rapper -q -i ntriples -o rdfxml "$work/export" >"$work/export.rdf"
	compare rdfxml "$work/export.rdf" ${graph:+--graph "$graph"}
else
	echo "rdfxml: NOT RUN, for rapper (raptor2-utils) is not installed"
fi
