package kg_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

var stranger = kg.Principal{ID: "agent://stranger", Method: "key"}

func add(q kg.Quad) func(*kg.Tx) error {
	return func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: q}) }
}

func TestReserved(t *testing.T) {
	own := kg.IRI(kg.OwnGraphPrefix + "x")
	reserved := map[string]kg.Quad{
		"own graph":    {Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o"), Graph: own},
		"own property": {Subject: kg.IRI("urn:s"), Predicate: kg.IRI(kg.OwnVocabulary + "p"), Object: kg.IRI("urn:o")},
		"own class":    {Subject: kg.IRI("urn:s"), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI(kg.OwnVocabulary + "C")},
	}
	s := kgtest.Disk(t, kg.Options{})
	for name, q := range reserved {
		for _, op := range []kg.Op{kg.Add, kg.Replace, kg.Remove} {
			_, err := s.Update(within(t), kg.Meta{Principal: stranger}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: op, Quad: q}) })
			if kg.CodeOf(err) != kg.CodeReserved {
				t.Errorf("%s, %s: got %v, want RESERVED", name, op, err)
			}
		}
		if _, err := s.Update(within(t), kg.Meta{Principal: stranger}, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}) }); err != nil {
			t.Errorf("%s by its own package: %v", name, err)
		}
		if _, err := s.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Remove, Quad: q}) }); err != nil {
			t.Errorf("%s at the data directory: %v", name, err)
		}
	}
	free := kg.Quad{Subject: kg.IRI(kg.OwnVocabulary + "s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI(kg.OwnVocabulary + "o")}
	if _, err := s.Update(within(t), kg.Meta{Principal: stranger}, add(free)); err != nil {
		t.Errorf("a statement about koine's vocabulary: %v", err)
	}
}

func TestSpeakingForOthers(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	for _, row := range []struct {
		name          string
		actFor        []kg.AgentID
		actor, source kg.AgentID
		op            kg.Op
		want          kg.Code
	}{
		{"oneself", nil, "", "", kg.Add, ""},
		{"oneself by name", nil, "stranger", "agent://stranger", kg.Add, ""},
		{"koine as source", []kg.AgentID{kg.Anybody}, "", kg.System, kg.Add, kg.CodeSourceForbidden},
		{"koine by name", []kg.AgentID{kg.System}, kg.System, "", kg.Add, kg.CodeSourceForbidden},
		{"another as source", nil, "", "agent://a", kg.Add, kg.CodeSourceForbidden},
		{"another as source of a replace", nil, "", "agent://a", kg.Replace, kg.CodeSourceForbidden},
		{"another's assertion removed", nil, "", "agent://a", kg.Remove, ""},
		{"another as actor", nil, "agent://a", "", kg.Add, kg.CodeSourceForbidden},
		{"one it may act for", []kg.AgentID{"agent://a"}, "agent://a", "agent://a", kg.Add, ""},
		{"one beside it", []kg.AgentID{"agent://a"}, "agent://a", "agent://b", kg.Add, kg.CodeSourceForbidden},
		{"anybody", []kg.AgentID{kg.Anybody}, "agent://a", "agent://b", kg.Add, ""},
	} {
		by := stranger
		by.ActFor = row.actFor
		q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(row.name)}
		_, err := s.Update(within(t), kg.Meta{Principal: by, Actor: row.actor}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: row.op, Quad: q, Source: row.source})
		})
		if kg.CodeOf(err) != row.want {
			t.Errorf("%s: got %v, want %q", row.name, err, row.want)
		}
	}
}

// creators lets only one agent make graphs.
type creators struct{ who kg.AgentID }

func (c creators) Allowed(p kg.Principal, _ kg.Term, right kg.Right) bool {
	return right != kg.Create || p.ID == c.who
}

func TestGraphsComeIntoBeingOnPurpose(t *testing.T) {
	maker := kg.Principal{ID: "agent://maker", Method: "key"}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: creators{maker.ID}}})
	in := func(object string) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(object), Graph: kg.IRI("urn:g")}
	}
	write := func(p kg.Principal, op kg.Op, q kg.Quad) kg.Code {
		_, err := s.Update(within(t), kg.Meta{Principal: p}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: op, Quad: q}) })
		return kg.CodeOf(err)
	}
	for _, op := range []kg.Op{kg.Add, kg.Replace, kg.Remove} {
		if got := write(stranger, op, in("a")); got != kg.CodeGraphNotFound {
			t.Errorf("%s in an absent graph: got %q, want GRAPH_NOT_FOUND", op, got)
		}
	}
	if got := write(maker, kg.Add, in("a")); got != "" {
		t.Errorf("by its maker: got %q", got)
	}
	if got := write(stranger, kg.Add, in("b")); got != "" {
		t.Errorf("once it is there: got %q", got)
	}
	for _, object := range []string{"a", "b"} {
		if got := write(stranger, kg.Remove, in(object)); got != "" {
			t.Errorf("a removal: got %q", got)
		}
	}
	if got := write(stranger, kg.Add, in("c")); got != kg.CodeGraphNotFound {
		t.Errorf("when it is empty again: got %q, want GRAPH_NOT_FOUND", got)
	}
}

// switching is an Access that a statement in a graph of koine's own shuts.
type switching struct {
	mu   sync.Mutex
	shut bool
	seen []kg.Revision
}

func (a *switching) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.shut || right < kg.Write
}

func (a *switching) follow(c *kg.Commit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shut, a.seen = true, append(a.seen, c.Revision)
}

// TestSystemChangesAreToldInTime proves that an update which is queued behind a change of
// koine's own records is executed under that change.
func TestSystemChangesAreToldInTime(t *testing.T) {
	a := new(switching)
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: a, OnSystemChange: a.follow}})
	q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o")}
	if _, err := s.Update(within(t), kg.Meta{Principal: stranger}, add(q)); err != nil {
		t.Fatal(err)
	}
	// The first update blocks the committer until the others are queued, so that they are
	// one group.
	running, goOn := make(chan struct{}), make(chan struct{})
	errs := make([]error, 3)
	var done sync.WaitGroup
	start := func(i int, fn func(*kg.Tx) error) {
		done.Go(func() { _, errs[i] = s.Update(within(t), kg.Meta{Principal: stranger}, fn) })
	}
	start(0, func(tx *kg.Tx) error { close(running); <-goOn; return nil })
	<-running
	own := q
	own.Graph = kg.SystemGraph
	start(1, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: own}) })
	waitQueued(t, s.Store, 1)
	late := q
	late.Object = kg.IRI("urn:late")
	start(2, add(late))
	waitQueued(t, s.Store, 2)
	close(goOn)
	done.Wait()
	if errs[0] != nil || errs[1] != nil || kg.CodeOf(errs[2]) != kg.CodePermissionDenied {
		t.Errorf("got %v, want only the last refused", errs)
	}
	if !slices.Equal(a.seen, []kg.Revision{2}) {
		t.Errorf("told of %v, want revision 2", a.seen)
	}
}

// TestJournalsEndNoGroup proves that a commit of a journal is not handed to observers, and
// shares an fsync with later ones.
func TestJournalsEndNoGroup(t *testing.T) {
	a := new(switching)
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: a, OnSystemChange: a.follow}})
	running, goOn := make(chan struct{}), make(chan struct{})
	errs := make([]error, 9)
	var done sync.WaitGroup
	done.Go(func() {
		_, errs[0] = s.Update(within(t), kg.Meta{Principal: stranger}, func(*kg.Tx) error { close(running); <-goOn; return nil })
	})
	<-running
	for i := range errs[1:] {
		q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.Sequence, Object: kg.Integer(int64(i) + 1), Graph: kg.IRI(kg.JournalGraphPrefix + "j")}
		done.Go(func() {
			_, errs[i+1] = s.Update(within(t), kg.Meta{Principal: stranger}, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}) })
		})
		waitQueued(t, s.Store, i+1)
	}
	close(goOn)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(a.seen) != 0 {
		t.Errorf("told of %v, want nothing", a.seen)
	}
	if groups := s.Stats().GroupCommits; groups.Count() != 1 || groups.Sum != 8 {
		t.Errorf("%d groups of %v commits, want one of 8", groups.Count(), groups.Sum)
	}
}

// always is a Verifier with one answer.
type always kg.Verdict

func (v always) Verify(context.Context, kg.Judgement) (kg.Verdict, error) { return kg.Verdict(v), nil }

func TestVerifiers(t *testing.T) {
	held := always{Outcome: kg.Held, Reason: "held", Details: "h", Hold: &kg.Hold{Approvals: 1, Roles: []string{"a", "b"}, Rules: []string{"1"}}}
	other := always{Outcome: kg.Held, Reason: "other", Details: "o", Hold: &kg.Hold{Approvals: 2, Roles: []string{"b"}, Rules: []string{"2"}}}
	rejected := always{Outcome: kg.Rejected, Reason: "rejected", Details: "r"}
	violation := always{Outcome: kg.Violation, Reason: "violation"}
	note := always{Details: "n"}
	for _, row := range []struct {
		name    string
		list    []kg.Verifier
		outcome kg.Outcome
		reason  string
		details string
	}{
		{"none", nil, kg.Accepted, "", ""},
		{"notes add up", []kg.Verifier{note, note}, kg.Accepted, "", "n\nn"},
		{"held is harder than accepted", []kg.Verifier{note, held}, kg.Held, "held", "h"},
		{"rejected is harder than held", []kg.Verifier{held, rejected, note}, kg.Rejected, "rejected", "r"},
		{"a violation is hardest", []kg.Verifier{violation, rejected, held}, kg.Violation, "violation", ""},
		{"the first of equals", []kg.Verifier{held, other}, kg.Held, "held", "h\no"},
	} {
		v, err := kg.Verifiers(row.list...).Verify(t.Context(), kg.Judgement{})
		if err != nil || v.Outcome != row.outcome || v.Reason != row.reason || v.Details != row.details {
			t.Errorf("%s: got %+v, %v", row.name, v, err)
		}
	}
	v, _ := kg.Verifiers(held, other).Verify(t.Context(), kg.Judgement{})
	if h := v.Hold; h.Approvals != 2 || !slices.Equal(h.Roles, []string{"b"}) || !slices.Equal(h.Rules, []string{"1", "2"}) {
		t.Errorf("two holds: got %+v, want both satisfied", h)
	}
}

// waitQueued waits until so many updates wait for the committer.
func waitQueued(t *testing.T, s *kg.Store, n int) {
	t.Helper()
	ctx := within(t)
	for s.Stats().QueueLength < n {
		if ctx.Err() != nil {
			t.Fatalf("%d updates are queued, want %d", s.Stats().QueueLength, n)
		}
		runtime.Gosched()
	}
}
