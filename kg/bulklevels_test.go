package kg

import (
	"context"
	"testing"

	"koine/internal/slowtest"
)

// TestLoadsBesideDeletions loads repeatedly into a store with many removals in between, so
// that tables with newer keys are below tables with older ones and below deletions. No
// removed statement reappears, before and after all levels are merged.
func TestLoadsBesideDeletions(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	s := openTest(t, Options{bulkFrom: 1, bulkChunk: 500})
	ann := Meta{Actor: "agent://ann"}
	const n, rounds = 60, 8
	levels := make(map[int]bool)
	for round := range rounds {
		if report := mustLoad(t, s, ann, people(n), LoadOptions{CommitQuads: 100}); !report.Bulk {
			t.Fatalf("round %d: %+v, want a bulk load", round, report)
		}
		for _, l := range s.db.Levels() {
			if l.NumTables > 0 {
				levels[l.Level] = true
			}
		}
		if round == rounds-1 {
			break
		}
		var patches []Patch
		i := 0
		for q := range people(n) {
			if i++; i%(round+2) == 0 {
				patches = append(patches, Patch{Op: Remove, Quad: q})
			}
		}
		_, err := s.Update(context.Background(), ann, func(tx *Tx) error {
			for _, p := range patches {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(levels) < 3 {
		t.Errorf("tables were on the levels %v only", levels)
	}
	other := openTest(t, Options{})
	mustLoad(t, other, ann, people(n), LoadOptions{})
	same := func(when string) {
		t.Helper()
		check, err := s.Maintenance().Check(context.Background(), CheckOptions{})
		if err != nil || !check.Clean() {
			t.Errorf("%s: Check: %+v, %v", when, check, err)
		}
		if got, want := s.Stats().Statements, other.Stats().Statements; got != want {
			t.Errorf("%s: %d statements, want %d", when, got, want)
		}
	}
	same("as they lie")
	if err := s.db.Flatten(1); err != nil {
		t.Fatal(err)
	}
	same("on one level")
}
