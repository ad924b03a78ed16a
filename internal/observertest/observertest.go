package observertest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Observers are the observers of a store by name, as pointers.
type Observers map[string]any

func (o Observers) dump() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		lines = append(lines, Dump(name, o[name])...)
	}
	return lines
}

// AtEnd compares the observers at the end of a test with those that again makes. The caller calls it before it
// opens the store: again runs when the store is closed, opens it with new observers, loads them, and returns
// them with a function that closes everything. Call the function that AtEnd returns after the store is open
// and before the observers register their ends: it sees them when nothing runs in the background any more. With
// -short nothing is compared.
func AtEnd(t testing.TB, again func() (o Observers, end func())) (compare func(live func() Observers)) {
	if testing.Short() {
		return func(func() Observers) {}
	}
	t.TempDir() // removed after the comparison, whatever the caller keeps there
	var was []string
	seen := false
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() || !seen {
			return
		}
		o, end := again()
		defer end()
		if d := difference(was, o.dump()); d != "" {
			t.Errorf("observers that begin on the log differ from those that followed it (-followed, +begun):\n%s", d)
		}
	})
	return func(live func() Observers) {
		t.Cleanup(func() {
			if !t.Failed() && !t.Skipped() {
				was, seen = live().dump(), true
			}
		})
	}
}

// maxDifference bounds the lines of a report.
const maxDifference = 40

// difference returns the lines of one sorted list only, "" if there are none.
func difference(a, b []string) string {
	slices.Sort(a)
	slices.Sort(b)
	var out []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out, a = append(out, "-"+a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out, b = append(out, "+"+b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	if len(out) > maxDifference {
		out = append(out[:maxDifference], "…")
	}
	return strings.Join(out, "\n")
}
