package kg

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestDiffTakesTheShorterWay proves that a difference is found in the log where
// that is less than to look at every statement, and not otherwise.
func TestDiffTakesTheShorterWay(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var many []Quad
	for i := range 40 * commitCost {
		many = append(many, numbered(i))
	}
	commitOf(t, s, many...)
	other := func(i int) Quad {
		return Quad{Subject: IRI("urn:t"), Predicate: IRI("urn:q"), Object: Integer(int64(i)), Graph: DefaultGraph}
	}
	for i := range 4 {
		commitOf(t, s, other(i))
	}
	for _, row := range []struct {
		name    string
		from    Revision
		pattern Pattern
		log     bool
		touched int
	}{
		{"few commits, many statements", 1, Pattern{}, true, 4},
		{"one commit", 4, Pattern{}, true, 1},
		{"no commit", 5, Pattern{}, true, 0},
		{"few commits, many statements of the predicate", 1, Pattern{Predicate: IRI("urn:p")}, true, 0},
		{"few statements of the predicate", 1, Pattern{Predicate: IRI("urn:q")}, false, 0},
		{"a subject", 1, Pattern{Subject: IRI("urn:t")}, false, 0},
		{"a commit that touched more than it is worth", 0, Pattern{}, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			snap, err := s.View(context.Background(), View{})
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			ids, known, err := snap.PatternIDs(row.pattern)
			if err != nil || !known {
				t.Fatal(known, err)
			}
			list, byLog, err := snap.touchedStatements(row.from, ids, nil)
			if err != nil || byLog != row.log || len(list) != row.touched {
				t.Errorf("got %d touched, by the log %v, %v, want %d, %v", len(list), byLog, err, row.touched, row.log)
			}
			snap.read.Store(0)
			n := 0
			for _, err := range snap.Diff(row.from, ids, nil) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if read := snap.StatementsRead(); row.log && read != int64(n) {
				t.Errorf("%d differences read %d statements", n, read)
			}
		})
	}
}

// BenchmarkVersions reads the history of one subject, a hundred statements of which changed
// a hundred times among those of others, beside the read of as many present statements.
func BenchmarkVersions(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const rounds = 100
	for i := range rounds {
		_, err := s.Update(context.Background(), Meta{}, func(tx *Tx) error {
			for j := range 100 {
				for _, subject := range []string{"urn:changing", fmt.Sprint("urn:other", i)} {
					q := Quad{Subject: IRI(subject), Predicate: IRI(fmt.Sprint("urn:p", j)), Object: Integer(int64(i))}
					if err := tx.Apply(Patch{Op: Replace, Quad: q}); err != nil {
						return err
					}
				}
				stands := Quad{Subject: IRI("urn:standing"), Predicate: IRI(fmt.Sprint("urn:p", j)), Object: Integer(int64(i))}
				if err := tx.Apply(Patch{Op: Add, Quad: stands}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	snap, err := s.View(context.Background(), View{MinCertainty: 0.1}) // so that both decode
	if err != nil {
		b.Fatal(err)
	}
	defer snap.Close()
	id := func(subject string) IDPattern {
		ids, _, err := snap.PatternIDs(Pattern{Subject: IRI(subject)})
		if err != nil {
			b.Fatal(err)
		}
		return ids
	}
	changing, standing := id("urn:changing"), id("urn:standing")
	koine := func(int) (int, time.Duration) {
		return timed(rounds*100, func() {
			for _, err := range snap.Versions(changing, nil) {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	twin := func(int) (int, time.Duration) {
		return timed(rounds*100, func() {
			for _, err := range snap.MatchIDs(standing, nil) {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	koine(0)
	compare(b, "versions", koine, twin)
}
