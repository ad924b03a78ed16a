// Package suggest suggests known names that are similar to a misspelt one, for the
// hints of errors.
package suggest

import "strings"

// Limits of a suggestion.
const (
	maxGuessedBytes = 40 // longer names get no suggestion
	maxSlips        = 2  // edits: insertion, deletion, substitution, transposition of neighbours
)

// Name returns the known name that is most similar to the given one, "" for none: equal
// up to case, or with few edits for its length.
func Name(name string, names []string) string {
	if len(name) > maxGuessedBytes {
		return ""
	}
	best, least := "", min(maxSlips, len(name)/3)+1
	for _, candidate := range names {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the edit distance in bytes, where a transposition of neighbours is
// one edit (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
