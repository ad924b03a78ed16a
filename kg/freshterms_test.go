package kg

import "testing"

// TestFreshTermsOfTheGroupAhead has a group go on where the one ahead ends, which goes on
// where one ends that has landed: the terms of that one are not kept.
func TestFreshTermsOfTheGroupAhead(t *testing.T) {
	landed, ahead, group := newFreshTerms(1), newFreshTerms(2), newFreshTerms(3)
	for i, f := range []*freshTerms{landed, ahead, group} {
		f.add(numbered(i).Object)
	}
	ahead.follow(landed)
	group.follow(ahead)
	if ahead.ahead != nil {
		t.Error("the terms of a group that has landed are kept")
	}
	for i, want := range []bool{false, true, true} {
		term := numbered(i).Object
		id, ok := group.id(term)
		back, known := group.term(uint64(i + 1))
		if ok != want || known != want || want && (id.Number() != uint64(i+1) || back != term) {
			t.Errorf("term %d: id %v %v, term %v %v", i+1, id, ok, back, known)
		}
	}
}
