package kg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"koine/kg/base"
	"koine/kg/internal/logentry"
)

// lastChangesStore is a store with small bounds for reads of the last changes of graphs.
type lastChangesStore struct {
	*testing.T
	*Store
	changes *LastChanges
}

func openForLastChanges(t *testing.T, o Options) *lastChangesStore {
	o.ReserveBytes = 1
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l := s.NewLastChanges()
	l.subjects, l.commits = 3, 40
	return &lastChangesStore{t, s, l}
}

func (s *lastChangesStore) apply(op Op, graph Term, subject, object int) {
	s.Helper()
	_, err := s.Update(s.Context(), Meta{Principal: SystemPrincipal()}, func(tx *Tx) error {
		return tx.Apply(Patch{Op: op, Quad: Quad{Subject: IRI(fmt.Sprint("urn:s", subject)), Predicate: IRI("urn:p"), Object: Integer(int64(object)), Graph: graph}})
	})
	if err != nil {
		s.Fatal(err)
	}
}

// fill puts statements of so many subjects into a graph.
func (s *lastChangesStore) fill(graph Term, subjects int) {
	s.Helper()
	_, err := s.Update(s.Context(), Meta{Principal: SystemPrincipal()}, func(tx *Tx) error {
		for i := range subjects {
			if err := tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI(fmt.Sprint("urn:s", i)), Predicate: IRI("urn:p"), Object: Integer(0), Graph: graph}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *lastChangesStore) view() *Snapshot {
	s.Helper()
	v, err := s.View(context.Background(), View{Principal: SystemPrincipal(), AllGraphs: true})
	if err != nil {
		s.Fatal(err)
	}
	return v
}

// compare checks an answer against that of the subjects of the graph.
func (s *lastChangesStore) compare(v *Snapshot, graph Term) {
	s.Helper()
	want, err := v.LastChange(graph)
	if err != nil {
		s.Fatal(err)
	}
	if got, err := s.changes.Of(v, graph); got != want || err != nil {
		s.Fatalf("%s at revision %d: last changed in %d, %v, want %d", graph, v.Revision(), got, err, want)
	}
}

// TestLastChangesAreThoseOfTheSubjects compares the answers of LastChanges with those of
// Snapshot.LastChange, at the newest revision and at older ones with open snapshots, while
// graphs are changed, replaced as a whole, deleted and created again.
func TestLastChangesAreThoseOfTheSubjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := openForLastChanges(t, Options{RingCommits: 4}.WithFaults(Faults{WholeFrom: 20, WholeCommit: 10}))
	s.changes.commits = 6
	graphs := []Term{DefaultGraph, IRI("urn:g1"), IRI("urn:g2"), IRI("urn:g3"), IRI("urn:never")}
	var held []*Snapshot
	defer func() {
		for _, v := range held {
			v.Close()
		}
	}()
	for range 600 {
		graph := graphs[dice.IntN(len(graphs)-1)]
		switch dice.IntN(30) {
		case 0:
			n, offset := dice.IntN(60), dice.IntN(10)
			_, err := s.ReplaceGraph(t.Context(), Meta{Principal: SystemPrincipal()}, graph, func(yield func(Quad, error) bool) {
				for i := range n {
					if !yield(Quad{Subject: IRI(fmt.Sprint("urn:s", i+offset)), Predicate: IRI("urn:p"), Object: Integer(0), Graph: graph}, nil) {
						return
					}
				}
			}, ReplaceOptions{})
			if err != nil {
				t.Fatal(err)
			}
		case 1:
			if graph != DefaultGraph {
				if _, err := s.DropGraph(t.Context(), Meta{Principal: SystemPrincipal()}, graph, DropOptions{Still: func() bool { return true }}); err != nil {
					t.Fatal(err)
				}
			}
		case 2, 3:
			if len(held) > 4 {
				held[0].Close()
				held = held[1:]
			}
			held = append(held, s.view())
		default:
			s.apply([...]Op{Add, Add, Remove}[dice.IntN(3)], graph, dice.IntN(12), dice.IntN(3))
		}
		if dice.IntN(3) > 0 {
			continue
		}
		v := s.view()
		if len(held) > 0 && dice.IntN(4) == 0 {
			s.compare(held[dice.IntN(len(held))], graphs[dice.IntN(len(graphs))])
		}
		s.compare(v, graphs[dice.IntN(len(graphs))])
		v.Close()
	}
	if s.changes.scans.Load() == 0 {
		t.Error("no graph was looked at as a whole: the bounds of the log were not reached")
	}
}

// TestLastChangesReadWhatCameSince proves that a graph of many subjects is looked at as a
// whole once, and then only the commits since the last call are, up to a bound.
func TestLastChangesReadWhatCameSince(t *testing.T) {
	s := openForLastChanges(t, Options{RingCommits: 8})
	large, other := IRI("urn:large"), IRI("urn:other")
	s.fill(large, 50)
	ask := func(scans int64) {
		t.Helper()
		v := s.view()
		defer v.Close()
		s.compare(v, large)
		if got := s.changes.scans.Load(); got != scans {
			t.Errorf("at revision %d: the graph was looked at as a whole %d times, want %d", v.Revision(), got, scans)
		}
	}
	pass := func(commits int) {
		for i := range commits {
			s.apply(Add, other, 0, i)
			s.apply(Remove, other, 0, i)
		}
	}
	ask(0) // the last commit changed it
	s.changes.known = make(map[ID]knownChange)
	pass(s.changes.commits/2 - 1)
	ask(0) // the log says so
	s.changes.known = make(map[ID]knownChange)
	pass(1)
	ask(1) // as many commits as are read say nothing
	for range 3 {
		pass(s.changes.commits / 2)
		ask(1)
	}
	s.apply(Add, large, 7, 7)
	ask(1)
	pass(s.changes.commits/2 + 1)
	ask(2)
}

// TestLastChangesForget proves that no more than a bound of graphs is remembered.
func TestLastChangesForget(t *testing.T) {
	l := &LastChanges{known: make(map[ID]knownChange)}
	for i := range rememberedLasts + 10 {
		l.cacheChange(ID{1, byte(i), byte(i >> 8)}, knownChange{asOf: 1, last: 1})
	}
	if len(l.known) != rememberedLasts {
		t.Errorf("%d graphs are remembered, want %d", len(l.known), rememberedLasts)
	}
}

// TestEntryHead compares the beginning of entries with the commits they hold, of all
// versions of entries.
func TestEntryHead(t *testing.T) {
	q := Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: Integer(1), Graph: IRI("urn:g")}
	a := Assertion{Source: "agent://a", Revision: 1}
	for name, c := range map[string]Commit{
		"plain":           {},
		"idempotent":      {IdempotencyKey: "once", ContentHash: [32]byte{1}},
		"of a proposal":   {ProposalID: "p", HeldFor: "review", Held: true},
		"of a generation": {Written: &base.WrittenGeneration{Graph: IRI("urn:g"), Began: 1, GivenUp: true}},
	} {
		c.Revision, c.Principal, c.Actor, c.Justification = 7, "agent://p", "agent://a", "why"
		c.TaskID, c.SessionID, c.MessageID = "task", "session", "message"
		if c.Written == nil {
			c.Changes = []Change{{Op: Add, Quad: q, Assertion: a, After: []Assertion{a}, ReplacedBy: -1}}
		}
		payload := logentry.AppendEntry(nil, &c)
		if _, err := logentry.ParseEntry(payload, c.Revision); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, err := parseEntryHead(payload)
		if want := (entryHead{c.Principal, c.SessionID, c.MessageID}); h != want || err != nil {
			t.Errorf("%s: got %+v, %v, want %+v", name, h, err, want)
		}
		for term, want := range map[Term]bool{IRI("urn:g"): true, IRI("urn:G"): false, IRI("urn:p"): c.Written == nil} {
			if got, err := entryHasTerm(payload, base.AppendTerm(nil, term)); got != want || err != nil {
				t.Errorf("%s: %s is named: %t, %v, want %t", name, term, got, err, want)
			}
		}
		for n := range len(payload) {
			_, _ = entryHasTerm(payload[:n], base.AppendTerm(nil, IRI("urn:G"))) // it does not panic
		}
	}
}
