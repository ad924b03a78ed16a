package kgtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"koine/kg"
)

// Distrust is a kg.Distrust that a test sets.
type Distrust struct {
	mu      sync.Mutex // guards the fields below
	doubts  kg.Doubts
	changed kg.Revision
}

// NewDistrust returns a Distrust with the given doubts from the beginning.
func NewDistrust(doubts kg.Doubts) *Distrust { return &Distrust{doubts: doubts} }

// Set replaces the doubts as of the commit in.
func (d *Distrust) Set(doubts kg.Doubts, in kg.Revision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubts, d.changed = doubts, in
}

// Doubted implements kg.Distrust.
func (d *Distrust) Doubted() kg.Doubts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doubts
}

// DoubtsChanged implements kg.Distrust.
func (d *Distrust) DoubtsChanged(after kg.Revision) (bool, kg.Revision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed > after, max(after, d.changed)
}

// testDistrust proves that assertions of an agent under quarantine are invisible to any read, at
// any revision, in any view, to updates and to verifiers; and that they are visible again when
// the quarantine is lifted.
func testDistrust(t *testing.T, f Factory) {
	clock := NewClock()
	distrust := NewDistrust(nil)
	verifier := &recordingVerifier{}
	look := func(context.Context, kg.Judgement) (kg.Verdict, error) { return kg.Verdict{}, nil }
	verifier.answer = func(ctx context.Context, j kg.Judgement) (kg.Verdict, error) { return look(ctx, j) }
	b := newBoth(t, f, kg.Options{Clock: clock.Now, Governor: kg.Governor{Distrust: distrust, Verifier: verifier}})
	const good, bad = kg.AgentID("agent://a"), kg.AgentID("agent://b")
	b.update(kg.Meta{}, add(quad("s", "p", "early"), bad), add(quad("s", "p", "both"), bad), add(quad("s", "p", "both"), good))
	clock.Move(seconds(10))
	b.update(kg.Meta{}, addWith(quad("s", "p", "late"), bad, 0.9), add(quad("s", "p", "good"), good), add(quadIn(kg.IRI("urn:g"), "s", kg.RDFType, "class"), bad))
	b.update(kg.Meta{}, add(quadIn(ownGraph, "s", "p", "own"), bad))
	b.update(kg.Meta{}, addWith(quad("s", "p", "both"), bad, 0.4), remove(quad("s", "p", "early"), ""))
	set := func(doubts kg.Doubts) {
		b.model.Doubts = doubts
		distrust.Set(doubts, b.Head().Revision)
	}
	admin := kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}
	views := []kg.View{
		{}, {AllGraphs: true}, {At: 1}, {At: 2}, {MinCertainty: 0.5}, {Believed: []kg.AgentID{bad}}, {Believed: []kg.AgentID{good}},
		{MaxAge: seconds(5)}, {ValidAt: noon}, {Graphs: []kg.Term{kg.IRI("urn:g")}}, {At: 2, MinCertainty: 0.5, Believed: []kg.AgentID{bad, good}},
		{Doubted: true, Principal: admin}, {Doubted: true, At: 2, MinCertainty: 0.5, Principal: admin},
	}
	for _, row := range []struct {
		name   string
		doubts kg.Doubts
		want   []string // objects in the present
	}{
		{"nobody", nil, []string{"both", "late", "good", "class"}},
		{"all it said", kg.Doubts{bad: {}}, []string{"both", "good"}},
		{"from then on", kg.Doubts{bad: noon.Add(seconds(10))}, []string{"both", "good"}},
		{"a little later", kg.Doubts{bad: noon.Add(seconds(10) + time.Millisecond)}, []string{"both", "late", "good", "class"}},
		{"both", kg.Doubts{bad: {}, good: noon.Add(seconds(10))}, []string{"both"}},
		{"somebody unknown", kg.Doubts{"agent://unknown": {}}, []string{"both", "late", "good", "class"}},
		{"lifted", nil, []string{"both", "late", "good", "class"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			set(row.doubts)
			for _, v := range views {
				if v.Principal.ID == "" {
					v.Principal = tester
				}
				snap := open(t, b.Store, v)
				sameStatements(t, b.model, snap, kg.Pattern{})
				sameStatements(t, b.model, snap, kg.Pattern{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p")})
				sameStatements(t, b.model, snap, kg.Pattern{Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:both")})
				sameVersions(t, b.model, snap, kg.Pattern{})
				sameDifferences(t, b.model, snap, kg.Pattern{}, 1)
				sameCounts(t, b.model, snap)
				snap.Close()
			}
			sameLog(t, b.model, b.Store, kg.Filter{View: kg.View{Principal: tester, AllGraphs: true}}, kg.LogRange{After: b.Oldest(), Until: b.Head()}, 100)
			snap := open(t, b.Store, kg.View{Principal: tester})
			defer snap.Close()
			found, err := collect(snap.Match(kg.Pattern{}))
			if err != nil || len(found) != len(row.want) {
				t.Errorf("got %d statements (%v), want %v", len(found), err, row.want)
			}
		})
	}
	t.Run("updates and those who judge them", func(t *testing.T) {
		set(kg.Doubts{bad: {}})
		late := kg.Pattern{Object: kg.IRI("urn:late")}
		var before, after, inside int
		look = func(_ context.Context, j kg.Judgement) (v kg.Verdict, err error) {
			for _, part := range []struct {
				of *kg.Snapshot
				n  *int
			}{{j.Before, &before}, {j.After, &after}} {
				found, failed := collect(part.of.Match(late))
				*part.n, err = len(found), errors.Join(err, failed)
			}
			return v, err
		}
		_, err := b.Update(within(t), kg.Meta{Principal: tester, DryRun: true}, func(tx *kg.Tx) error {
			found, err := collect(tx.Match(late))
			inside = len(found)
			if err == nil {
				err = tx.Apply(add(quad("s", "p", "new"), good))
			}
			return err
		})
		if err != nil || inside != 0 || before != 0 || after != 0 {
			t.Errorf("%v: the update saw %d, the verifier %d before and %d after; want none", err, inside, before, after)
		}
		// A replace removes invisible statements, too.
		b.update(kg.Meta{}, kg.Patch{Op: kg.Replace, Quad: quad("s", "p", "only"), Source: good})
		set(nil)
		snap := open(t, b.Store, kg.View{Principal: tester})
		defer snap.Close()
		sameStatements(t, b.model, snap, kg.Pattern{})
	})
	t.Run("only administrators see more", func(t *testing.T) {
		stranger := kg.Principal{ID: "agent://stranger", Method: "key"}
		snap, err := b.View(within(t), kg.View{Principal: stranger, Doubted: true})
		if kg.CodeOf(err) != kg.CodePermissionDenied {
			t.Errorf("a stranger's read: got %v, want PERMISSION_DENIED", err)
		}
		if err == nil {
			snap.Close()
		}
		_, err = b.Watch(within(t), kg.Filter{View: kg.View{Principal: stranger, Doubted: true}}, b.Head())
		if kg.CodeOf(err) != kg.CodePermissionDenied {
			t.Errorf("a stranger's watch: got %v, want PERMISSION_DENIED", err)
		}
	})
}

// testDistrustWatched proves that a watcher is notified when the doubts change, and then
// continues under the new ones.
func testDistrustWatched(t *testing.T, f Factory) {
	distrust := NewDistrust(nil)
	b := newBoth(t, f, kg.Options{
		Governor: kg.Governor{Distrust: distrust, OnSystemChange: func(c *kg.Commit) { distrust.Set(kg.Doubts{"agent://b": {}}, c.Revision) }},
	})
	b.update(kg.Meta{}, add(quad("s", "p", "1"), "agent://b"), add(quad("s", "p", "2"), "agent://a"))
	filter := kg.Filter{View: kg.View{Principal: tester}}
	follower := Record(t, b.Store, filter, b.Oldest())
	knowing := Record(t, b.Store, matchAll(), b.Oldest())
	if _, err := follower.Wait(within(t), 2); err != nil {
		t.Fatal(err)
	}
	// A commit to the system graph changes the doubts.
	b.update(kg.Meta{}, add(kg.Quad{Subject: kg.IRI("urn:x"), Predicate: kg.IRI("urn:y"), Object: kg.IRI("urn:z"), Graph: kg.SystemGraph}, ""))
	if err := follower.End(within(t)); kg.CodeOf(err) != kg.CodeAccessChanged {
		t.Errorf("a follower ended with %v, want ACCESS_CHANGED", err)
	}
	b.model.Doubts = distrust.Doubted()
	b.update(kg.Meta{}, add(quad("s", "p", "3"), "agent://b"), add(quad("s", "p", "4"), "agent://a"))
	events, err := Watched(within(t), b.Store, filter, b.Oldest(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := Filtered(History{b.Oldest(), events}, b.model, filter); err != nil {
		t.Error(err)
	}
	if _, err := knowing.Wait(within(t), 5); err != nil {
		t.Errorf("who sees those under quarantine: %v, want all five changes", err)
	}
}
