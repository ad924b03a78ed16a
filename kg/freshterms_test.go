package kg

import (
	"testing"

	"koine/kg/internal/index"
)

// TestFreshTermsOfTheGroupAhead has a group continue after the one ahead, which continues
// after an applied one: the terms of that one are dropped.
func TestFreshTermsOfTheGroupAhead(t *testing.T) {
	landed, ahead, group := index.NewFreshTerms(1), index.NewFreshTerms(2), index.NewFreshTerms(3)
	for i, f := range []*index.FreshTerms{landed, ahead, group} {
		f.Add(numbered(i).Object)
	}
	ahead.ContinueAfter(landed)
	group.ContinueAfter(ahead)
	if ahead.Previous != nil {
		t.Error("the terms of a group that has landed are kept")
	}
	for i, want := range []bool{false, true, true} {
		term := numbered(i).Object
		id, ok := group.ID(term)
		back, known := group.Term(uint64(i + 1))
		if ok != want || known != want || want && (id.Number() != uint64(i+1) || back != term) {
			t.Errorf("term %d: id %v %v, term %v %v", i+1, id, ok, back, known)
		}
	}
}
