package kg

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"
)

// people is a source of quads about so many people, with all kinds of objects, some
// statements twice, close by and far away.
func people(n int) iter.Seq2[Quad, error] {
	return func(yield func(Quad, error) bool) {
		person := func(i int) Term { return IRI(fmt.Sprint("http://example.org/person/", i)) }
		graph := func(i int) Term {
			if i%3 == 0 {
				return DefaultGraph
			}
			return IRI(fmt.Sprint("urn:graph:", i%3))
		}
		for i := range n {
			for _, q := range []Quad{
				{Subject: person(i), Predicate: IRI(RDFType), Object: IRI("urn:Person"), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:name"), Object: LangString(fmt.Sprint("somebody by the name of ", i), "en"), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:age"), Object: Integer(int64(i % 90)), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:knows"), Object: person((i * 7) % n), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:knows"), Object: Blank(fmt.Sprint("b", i%50)), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:weight"), Object: Typed(fmt.Sprint(i%40, ".5"), XSDDecimal), Graph: graph(i)},
				{Subject: person(i), Predicate: IRI("urn:age"), Object: Integer(int64(i % 90)), Graph: graph(i)},      // again, close by
				{Subject: person(i / 2), Predicate: IRI(RDFType), Object: IRI("urn:Person"), Graph: graph(i / 2)},     // again, far away
				{Subject: Blank(fmt.Sprint("b", i%50)), Predicate: IRI("urn:p"), Object: person(i), Graph: graph(i)},  // a blank subject
				{Subject: person(i), Predicate: IRI("urn:said"), Object: String(fmt.Sprint("s", i)), Graph: graph(i)}, // an inline string
			} {
				if !yield(q, nil) {
					return
				}
			}
		}
	}
}

// TestBulkLoadMakesWhatUpdatesMake loads in several rounds, each with several runs on disk,
// into stores that are empty, have other statements, some of the same by the same agent,
// and some of the same by another: the index equals that of the same load as updates.
func TestBulkLoadMakesWhatUpdatesMake(t *testing.T) {
	t.Parallel()
	const n = 800
	ann := Meta{Actor: "agent://ann"}
	for name, before := range map[string]func(t *testing.T, s *Store){
		"nothing": func(*testing.T, *Store) {},
		"others": func(t *testing.T, s *Store) {
			for i := range 20 {
				commitOf(t, s, numbered(i))
			}
		},
		"the same by the same": func(t *testing.T, s *Store) { mustLoad(t, s, ann, people(n/3), LoadOptions{Online: true}) },
		"the same by another": func(t *testing.T, s *Store) {
			mustLoad(t, s, Meta{Actor: "agent://bob"}, people(n/3), LoadOptions{Online: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := make(map[string]int)
			var mu sync.Mutex
			bounds := Options{bulkStep: func(step string) { mu.Lock(); steps[step]++; mu.Unlock() }, bulkFrom: 1, bulkChunk: 300, bulkTableBytes: 150 << 10, bulkSortBytes: 16 << 10}
			bulk, online := openTest(t, bounds), openTest(t, Options{})
			before(t, bulk)
			before(t, online)
			quads := int(0)
			for range people(n) {
				quads++
			}
			const commit = 50
			report := mustLoad(t, bulk, ann, people(n), LoadOptions{CommitQuads: commit})
			if !report.Bulk || report.Read != uint64(quads) {
				t.Errorf("got %+v, want a bulk load of %d quads", report, quads)
			}
			other := mustLoad(t, online, ann, people(n), LoadOptions{CommitQuads: commit, Online: true})
			if report.Bulk = false; report != other {
				t.Errorf("in bulk: %+v, otherwise: %+v", report, other)
			}
			got, want := indexOf(t, bulk), indexOf(t, online)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("row %d: got %s, want %s", i, got[i], want[i])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d rows, want %d", len(got), len(want))
			}
			if steps["round"] < 3 || steps["spill"] < 2*steps["round"] {
				t.Errorf("too few rounds or runs: %v", steps)
			}
			check, err := bulk.Maintenance().Check(context.Background(), CheckOptions{})
			if err != nil || !check.Clean() {
				t.Errorf("Check: %+v, %v", check, err)
			}
		})
	}
}

// openTest opens a store of which each commit has the same time.
func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	o.Clock = func() time.Time { return time.UnixMilli(1) }
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustLoad(t *testing.T, s *Store, m Meta, quads iter.Seq2[Quad, error], o LoadOptions) LoadReport {
	t.Helper()
	report, err := s.Load(context.Background(), m, quads, o)
	if err != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	return report
}

func indexOf(t *testing.T, s *Store) []string {
	t.Helper()
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
