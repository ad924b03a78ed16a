package kg_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/kg"
)

// A snapshot has local ids for so many terms and no more; those that it has stay.
func TestMaxLocalTerms(t *testing.T) {
	s, err := openStore(t, t.TempDir(), kg.Options{ReserveBytes: 1}).View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term := func(i int) kg.Term { return kg.IRI(fmt.Sprintf("urn:unknown:%d", i)) }
	ids := map[kg.ID]bool{}
	for i := range kg.MaxLocalTerms {
		id, err := s.LocalID(term(i))
		if err != nil {
			t.Fatalf("term %d: %v", i, err)
		}
		ids[id] = true
	}
	if len(ids) != kg.MaxLocalTerms {
		t.Errorf("%d terms have %d ids", kg.MaxLocalTerms, len(ids))
	}
	_, err = s.LocalID(term(kg.MaxLocalTerms))
	if e := kg.AsError(err); kg.CodeOf(err) != kg.CodeLimitExceeded || e.Limit != "localTerms" || e.Hint == "" || !strings.Contains(e.Error(), "10000 unknown terms") {
		t.Errorf("one term more: got %v", err)
	}
	if id, err := s.LocalID(term(0)); err != nil || !ids[id] {
		t.Errorf("a term that has an id: got %v, %v", id, err)
	}
	if got, err := s.Term(mustLocal(t, s, term(7))); err != nil || got != term(7) {
		t.Errorf("the term of an id: got %v, %v", got, err)
	}
}

func mustLocal(t *testing.T, s *kg.Snapshot, term kg.Term) kg.ID {
	t.Helper()
	id, err := s.LocalID(term)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
