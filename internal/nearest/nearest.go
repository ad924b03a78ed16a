// Package nearest guesses what a misspelt name was to be, for the hint of an error.
package nearest

import "strings"

// Bounds of a guess at what a name was to be.
const (
	maxGuessedBytes = 40 // longer names are no slip
	maxSlips        = 2  // letters too many, too few or wrong, or neighbours that changed places
)

// Name is the name that the given one may be a slip of, "" for none: the
// same but for upper and lower case, or with few letters wrong for its length.
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

// distance is the number of bytes to add, drop or change, where two neighbours that
// changed places are one slip (optimal string alignment).
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
