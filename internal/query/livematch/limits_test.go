package livematch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/internal/query/livematch"
	"koine/internal/query/pattern"
	"koine/kg"
	"koine/kg/kgtest"
)

// likes commits that each of the people likes the thing.
func likes(t *testing.T, s *kgtest.Store, thing string, people int) {
	t.Helper()
	if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for i := range people {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:%d", i)), Predicate: kg.IRI("urn:likes"), Object: kg.IRI("urn:" + thing)}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func likers() pattern.Group {
	return pattern.Group{Triples: []pattern.Triple{{Subject: pattern.Var("who"), Predicate: pattern.Term(kg.IRI("urn:likes")), Object: pattern.Var("what")}}}
}

// last returns the difference of the last commit.
func last(ctx context.Context, t *testing.T, s *kgtest.Store, group pattern.Group, columns []string, limits livematch.Limits) (livematch.Difference, int64, error) {
	t.Helper()
	m, err := livematch.New(group, columns, limits)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, s, kg.View{})
	r := len(h.at) - 1
	d, err := m.Difference(ctx, h.at[r-1], h.at[r], h.commit(r))
	return d, h.at[r].StatementsRead(), err
}

// TestBounds proves that each limit accepts its maximum, and that the error beyond it
// names the limit.
func TestBounds(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	likes(t, s, "tea", 50)
	likes(t, s, "milk", 10)
	for _, row := range []struct {
		name     string
		at, past livematch.Limits
		columns  []string
		rows     int
		why      string
	}{
		{"rows", livematch.Limits{Rows: 10}, livematch.Limits{Rows: 9}, nil, 10, "revision 2 changed 10 rows; the limit is 9"},
		// Beyond the number of evaluations, the pattern is evaluated in full, with this limit.
		{"evaluations", livematch.Limits{Evaluations: 10, SnapshotRows: 50}, livematch.Limits{Evaluations: 9, SnapshotRows: 50}, nil, 10, "more than 50 rows would have to be held in memory"},
		{"standing", livematch.Limits{Evaluations: 1, SnapshotRows: 60}, livematch.Limits{Evaluations: 1, SnapshotRows: 59}, nil, 10, "more than 59 rows would have to be held in memory"},
		{"asking again", livematch.Limits{Evaluations: 20, SnapshotRows: 50}, livematch.Limits{Evaluations: 19, SnapshotRows: 9}, []string{"who"}, 0, "more than 9 rows would have to be compared"},
		{"statements", livematch.Limits{}, livematch.Limits{Statements: 9}, nil, 10, "the pattern needs more than 9 statements"},
	} {
		d, _, err := last(t.Context(), t, s, likers(), row.columns, row.at)
		if err != nil || len(d.Added) != row.rows {
			t.Errorf("%s at the bound: got %d rows, %v, want %d", row.name, len(d.Added), err, row.rows)
		}
		_, _, err = last(t.Context(), t, s, likers(), row.columns, row.past)
		if kg.CodeOf(err) != kg.CodeResync || !strings.Contains(err.Error(), row.why) {
			t.Errorf("%s past the bound: got %v, want %s because %s", row.name, err, kg.CodeResync, row.why)
		}
	}
	if _, err := livematch.New(pattern.Group{Triples: append(likers().Triples, likers().Triples...)}, nil, livematch.Limits{Triples: 1}); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("triples past the bound: got %v", err)
	}
	if _, err := livematch.New(likers(), []string{"nobody"}, livematch.Limits{}); kg.AsError(err).Field != "select" {
		t.Errorf("a column that is none: got %v", err)
	}
}

// TestTimeIsBounded proves that the context bounds the time.
func TestTimeIsBounded(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	likes(t, s, "tea", 3000)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	group := pattern.Group{Triples: append(likers().Triples, pattern.Triple{Subject: pattern.Var("other"), Predicate: pattern.Term(kg.IRI("urn:likes")), Object: pattern.Var("what")})}
	if _, _, err := last(ctx, t, s, group, nil, livematch.Limits{}); kg.CodeOf(err) != kg.CodeResync {
		t.Errorf("got %v, want %s", err, kg.CodeResync)
	}
}

// TestReadsWhatChanged proves that the statements read depend on the size of the commit,
// not on the number of matches.
func TestReadsWhatChanged(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	likes(t, s, "tea", 2000)
	likes(t, s, "milk", 1)
	d, read, err := last(t.Context(), t, s, likers(), nil, livematch.Limits{})
	if err != nil || len(d.Added) != 1 || read > 100 {
		t.Errorf("got %d rows by reading %d statements, %v; want 1 by reading few", len(d.Added), read, err)
	}
}
