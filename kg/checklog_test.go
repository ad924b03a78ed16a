package kg_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"koine/kg"
)

// A check compares the entries of the log with each other: each begins where those
// before it ended, and none is older.
func TestCheckEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	for i := range 2 {
		if err := addOne(s, within(t), integer(i)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := s.Commit(within(t), kg.SystemPrincipal(), 1)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	known, stands := first.Changes[0].Quad, first.Changes[0].After
	fresh := known
	fresh.Object = kg.Integer(7)
	other := slices.Clone(stands)
	other[0].Certainty, other[0].HasCertainty = 0.5, true
	change := func(op kg.Op, q kg.Quad, since kg.Revision, before []kg.Assertion) kg.Change {
		a := kg.Assertion{Source: "agent://ann", Time: later}
		return kg.Change{Op: op, Quad: q, Assertion: a, Before: before, Since: since, ReplacedBy: -1}
	}
	for i, c := range []struct {
		time    time.Time
		changes []kg.Change
		want    string
	}{
		{later, []kg.Change{change(kg.Add, known, 1, stands)}, ""},
		{later, []kg.Change{change(kg.Add, known, 1, other)}, "entry 3, change 0: the state before"},
		{later, []kg.Change{change(kg.Add, fresh, 0, nil), change(kg.Add, known, 2, stands)}, "entry 3, change 1: the state before"},
		{later, []kg.Change{change(kg.Add, known, 0, nil)}, "entry 3, change 0: the state before"},
		{first.Time.Add(-time.Hour), []kg.Change{change(kg.Add, fresh, 0, nil)}, "the time of entry 3 is before"},
	} {
		spoiled := t.TempDir()
		copyTree(t, dir, spoiled, nil)
		if err := kg.AppendCommit(spoiled, &kg.Commit{Time: c.time, Principal: "agent://ann", Actor: "agent://ann", Changes: c.changes}); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, spoiled, tinyLog())
		for _, bound := range []int{0, 1} {
			r, err := s.Maintenance().Check(within(t), kg.CheckOptions{}.WithBounds(bound, bound))
			if err != nil {
				t.Fatal(err)
			}
			problems := slices.DeleteFunc(r.Problems, func(p string) bool { return !strings.HasPrefix(p, "log: ") })
			if said := strings.Join(problems, "\n"); (said == "") != (c.want == "") || !strings.Contains(said, c.want) || len(problems) > 1 {
				t.Errorf("row %d: it says %q, want %q", i, said, c.want)
			}
		}
		mustClose(t, s)
	}
}
