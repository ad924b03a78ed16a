package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// maxNamespaceSlips is how different the beginnings of two IRIs may be that end
// alike: http for https, or another year.
const maxNamespaceSlips = 6

// maxShortBytes is how long a name is that two slips make another one, unless it begins
// alike.
const maxShortBytes = 4

// IRIs are up to most of the candidates that the IRI may be a slip of, the
// nearest first. What stands behind the last # or / decides; an IRI that ends in
// the same name also counts from another namespace, if that is like this one.
func IRIs(iri string, candidates []string, most int) []string {
	type guess struct {
		iri  string
		away int
	}
	var found []guess
	space, name := split(iri)
	for _, c := range candidates {
		s, n := split(c)
		away, near := slips(name, n)
		if !near || s != space && away > 0 && !strings.EqualFold(s, space) {
			continue
		}
		if s != space {
			d := distance(clip(strings.ToLower(space)), clip(strings.ToLower(s)))
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

// Names are up to most of the names that the given one may be a slip of, the
// nearest first.
func Names(name string, names []string, most int) []string {
	away := map[string]int{}
	var found []string
	for _, candidate := range names {
		if n, near := slips(name, candidate); near {
			found, away[candidate] = append(found, candidate), n
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(away[a], away[b]), cmp.Compare(a, b)) })
	return found[:min(most, len(found))]
}

// slips counts what is wrong with a name; false when it is another one. One slip is
// forgiven in up to three letters of the shorter name, and two in more; in four letters
// only where both begin alike: livs may be likes, but ipfs is not rdfs. That is more than
// Name forgives, which offers a single one.
func slips(name, meant string) (n int, near bool) {
	if strings.EqualFold(name, meant) {
		return 0, true
	}
	if len(name) > maxGuessedBytes || len(meant) > maxGuessedBytes+maxSlips {
		return 0, false
	}
	name, meant = strings.ToLower(name), strings.ToLower(meant)
	n = distance(name, meant)
	shorter := min(len(name), len(meant))
	if n > min(maxSlips, (shorter+2)/3) || n >= len(name) { // no letter is the same
		return n, false
	}
	return n, n == 1 || shorter > maxShortBytes || name[0] == meant[0]
}

// split parts an IRI into its namespace and its local name.
func split(iri string) (space, name string) {
	i := strings.LastIndexAny(iri, "#/:") + 1
	return iri[:i], iri[i:]
}

// clip bounds what a distance is computed of.
func clip(s string) string { return s[:min(len(s), 2*maxGuessedBytes)] }
