package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// maxNamespaceSlips is the largest edit distance between the namespaces of two IRIs
// with the same local name: http for https, or another year.
const maxNamespaceSlips = 6

// maxShortBytes is the length up to which two edits make another name, unless the first
// letters agree.
const maxShortBytes = 4

// IRIs returns up to most candidates that are similar to the IRI, nearest first. The
// part after the last # or / decides; an IRI with the same local name also counts if
// its namespace is similar.
func IRIs(iri string, candidates []string, most int) []string {
	type guess struct {
		iri  string
		away int
	}
	var found []guess
	space, name := splitIRI(iri)
	for _, c := range candidates {
		s, n := splitIRI(c)
		away, near := editsBetween(name, n)
		if !near || s != space && away > 0 && !strings.EqualFold(s, space) {
			continue
		}
		if s != space {
			d := distance(clipName(strings.ToLower(space)), clipName(strings.ToLower(s)))
			if d > maxNamespaceSlips {
				continue
			}
			away += 1 + d
		}
		found = append(found, guess{c, away})
	}
	slices.SortFunc(found, func(a, b guess) int { return cmp.Or(cmp.Compare(a.away, b.away), cmp.Compare(a.iri, b.iri)) })
	var out []string
	for _, g := range found[:min(most, len(found))] {
		out = append(out, g.iri)
	}
	return out
}

// Names returns up to most names that are similar to the given one, nearest first.
func Names(name string, names []string, most int) []string {
	away := map[string]int{}
	var found []string
	for _, candidate := range names {
		if n, near := editsBetween(name, candidate); near {
			found, away[candidate] = append(found, candidate), n
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(away[a], away[b]), cmp.Compare(a, b)) })
	return found[:min(most, len(found))]
}

// editsBetween returns the edit distance of two names, and false if they are not similar. It
// allows one edit for up to three letters of the shorter name, and two for more; for
// four letters only if the first letters agree: livs may be likes, but ipfs is not
// rdfs. This is more lenient than Name, which returns a single suggestion.
func editsBetween(name, meant string) (n int, near bool) {
	if strings.EqualFold(name, meant) {
		return 0, true
	}
	if len(name) > maxGuessedBytes || len(meant) > maxGuessedBytes+maxSlips {
		return 0, false
	}
	name, meant = strings.ToLower(name), strings.ToLower(meant)
	n = distance(name, meant)
	shorter := min(len(name), len(meant))
	if n > min(maxSlips, (shorter+2)/3) || n >= len(name) { // nothing in common
		return n, false
	}
	return n, n == 1 || shorter > maxShortBytes || name[0] == meant[0]
}

// splitIRI splits an IRI into its namespace and its local name.
func splitIRI(iri string) (space, name string) {
	i := strings.LastIndexAny(iri, "#/:") + 1
	return iri[:i], iri[i:]
}

// clipName limits the input of distance.
func clipName(s string) string { return s[:min(len(s), 2*maxGuessedBytes)] }
