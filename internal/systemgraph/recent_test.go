package systemgraph_test

import (
	"testing"

	"koine/internal/systemgraph"
	"koine/kg"
)

// A change counts for readers before it, until it is forgotten: then for every reader that
// may have missed it.
func TestLately(t *testing.T) {
	var l systemgraph.RecentChanges[string]
	ask := func(what string, after kg.Revision, key string, changed bool, upTo kg.Revision) {
		t.Helper()
		got, at := l.Since(after, func(c *string) bool { return *c == key })
		if got != changed || at != upTo {
			t.Errorf("%s: got %t up to %d, want %t up to %d", what, got, at, changed, upTo)
		}
	}
	ask("nothing yet", 3, "a", false, 3)
	l.Add(5, "a", "b")
	l.Add(7, "c")
	l.Add(8)
	ask("behind both", 7, "c", false, 7)
	ask("between", 5, "a", false, 7)
	ask("between", 5, "c", true, 7)
	ask("before", 4, "b", true, 7)
	ask("another's", 4, "d", false, 7)
	for i := range systemgraph.MaxRecentChanges - 3 {
		l.Add(kg.Revision(10+i), "x")
	}
	last := kg.Revision(10 + systemgraph.MaxRecentChanges - 4)
	ask("all are kept", 4, "d", false, last)
	l.Add(last+1, "x")
	ask("one is forgotten", 4, "d", true, last+1)
	ask("and who is behind it", 5, "d", false, last+1)
	l.AssumeChangedUpTo(last + 2)
	ask("all forgotten", last+1, "d", true, last+2)
	ask("behind all", last+2, "d", false, last+2)
}
