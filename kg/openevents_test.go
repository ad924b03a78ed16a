package kg

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// partAccess hides a graph and a predicate from some, and the past of a graph.
type partAccess struct{}

func (partAccess) Allowed(p Principal, graph Term, right Right) bool {
	return right > Read || p.ID != "agent://bob" || graph != IRI("urn:secret")
}

func (partAccess) Hides(p Principal) func(predicate, graph Term) bool {
	if p.ID != "agent://eve" {
		return nil
	}
	return func(predicate, graph Term) bool {
		return graph == IRI("urn:g") && (predicate == IRI("urn:q") || predicate == IRI(RDFType))
	}
}

func (partAccess) Forgets(p Principal) func(graph Term) bool {
	return func(graph Term) bool { return p.ID == "agent://wes" && graph == IRI("urn:g") }
}

// sometimesDoubts has agents under quarantine at times.
type sometimesDoubts struct{ now Doubts }

func (d *sometimesDoubts) Doubted() Doubts                               { return d.now }
func (d *sometimesDoubts) DoubtsChanged(after Revision) (bool, Revision) { return false, after }

// Filters of readers who see all and less of the same commits make the same events with the events
// that they share as alone, whoever is first.
func TestOpenEventsAreThoseOfEachFilter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	doubts := &sometimesDoubts{}
	s := openTest(t, Options{Governor: Governor{Access: partAccess{}, Distrust: doubts}})
	var filters []Filter
	for _, agent := range []AgentID{"agent://ann", "agent://bob", "agent://eve", "agent://wes", "agent://zoe"} {
		view := View{Principal: Principal{ID: agent}}
		half, since, late, some, all := view, view, view, view, view
		half.MinCertainty, since.Believed, some.Graphs = 0.5, []AgentID{"agent://a"}, []Term{IRI("urn:g")}
		late.ValidAt = time.UnixMilli(1)
		all.Doubted = true
		filters = append(filters,
			Filter{View: view}, Filter{View: all}, Filter{View: half}, Filter{View: since}, Filter{View: late}, Filter{View: some},
			Filter{View: view, Patterns: []Pattern{{Object: IRI("urn:o1")}}}, Filter{View: view, Ops: []Op{Add, Replace}},
			Filter{View: view, Keep: func(st Statement) bool { return st.Assertions[0].Source != "agent://b" }},
		)
	}
	pick := func(list ...string) string { return list[dice.IntN(len(list))] }
	shared, events := 0, 0
	for range 400 {
		doubts.now = nil
		if dice.IntN(4) == 0 {
			doubts.now = Doubts{"agent://b": time.Time{}}
		}
		meta := Meta{Principal: Principal{ID: "agent://zoe", ActFor: []AgentID{Anybody}, Method: "open"}}
		if dice.IntN(2) == 0 {
			meta.Justification = "because"
		}
		receipt, err := s.Update(t.Context(), meta, func(tx *Tx) error {
			for range 1 + dice.IntN(5) {
				q := Quad{Subject: IRI(pick("urn:s1", "urn:s2")), Predicate: IRI(pick("urn:p", "urn:q", RDFType)), Object: IRI(pick("urn:o1", "urn:o2")), Graph: IRI(pick("urn:g", "urn:secret"))}
				p := Patch{Op: []Op{Add, Add, Remove, Replace}[dice.IntN(4)], Quad: q, Source: AgentID(pick("agent://a", "agent://b")), Certainty: []float64{0.25, 0.75}[dice.IntN(2)], HasCertainty: true}
				if p.Op == Remove {
					p = Patch{Op: Remove, Quad: q}
				}
				if err := tx.Apply(p); err != nil && CodeOf(err) != CodeNotFound {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !receipt.Committed {
			continue
		}
		c, err := s.tailer.commitAt(receipt.Revision)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range dice.Perm(len(filters)) {
			together, alone := prepared(t, s, filters[n]), prepared(t, s, filters[n])
			together.open = &s.tailer.open
			for i := range c.Changes {
				got, want := together.eventOf(s.dir.Epoch, c, i), alone.eventOf(s.dir.Epoch, c, i)
				if !sameEvents(got, want) || together.stale != alone.stale {
					t.Fatalf("filter %d (%s), change %d of revision %d:\ngot   %s\nalone %s", n, filters[n].View.Principal.ID, i, c.Revision, describeEvents(got), describeEvents(want))
				}
				if events++; len(got) > 0 && together.openCommit(c, i) != nil {
					shared++
				}
			}
		}
	}
	if shared == 0 || shared > events/2 {
		t.Errorf("%d of %d events are shared", shared, events)
	}
}

func prepared(t *testing.T, s *Store, f Filter) *watchFilter {
	t.Helper()
	seen, err := f.prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	seen.followed = s.Head().Revision // the past is what is committed so far
	return seen
}

// sameEvents compares events by value: commits without their texts are made for each reader.
func sameEvents(a, b []Event) bool {
	if len(a) != len(b) || len(a) == 0 {
		return len(a) == len(b)
	}
	x, y := a[0], b[0]
	if !reflect.DeepEqual(x.Commit, y.Commit) {
		return false
	}
	x.Commit, y.Commit = nil, nil
	return reflect.DeepEqual(x, y)
}

func describeEvents(list []Event) string {
	if len(list) == 0 {
		return "none"
	}
	e := list[0]
	return fmt.Sprintf("%v %v, previous %v, remains %t, types %v, because %q", e.Op, e.Statement, e.Previous, e.StatementRemains, e.Types, e.Commit.Justification)
}

// A watcher is given an event that another one made, and one that is too large for all is made for
// each.
func TestOpenEventsAreMadeOnce(t *testing.T) {
	for _, row := range []struct {
		changes, bytes int
		want           bool
	}{{1, 10, true}, {maxOpenChanges, 10, true}, {maxOpenChanges + 1, 10, false}, {1, maxOpenBytes / 2, true}, {1, maxOpenBytes, false}} {
		s := openTest(t, Options{})
		receipt, err := s.Update(t.Context(), Meta{}, func(tx *Tx) error {
			for i := range row.changes {
				text := fmt.Sprintf("%d%0*d", i, row.bytes, 0)
				if err := tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: String(text)}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.tailer.commitAt(receipt.Revision)
		if err != nil {
			t.Fatal(err)
		}
		var made [2][]Event
		for i := range made {
			f := prepared(t, s, Filter{View: View{Principal: Principal{ID: AgentID(fmt.Sprintf("agent://reader%d", i))}}})
			f.open = &s.tailer.open
			made[i] = f.eventOf(s.dir.Epoch, c, 0)
		}
		if same := &made[0][0] == &made[1][0]; same != row.want {
			t.Errorf("%d changes of %d bytes: made once: %t, want %t", row.changes, row.bytes, same, row.want)
		}
	}
}
