package demo_test

import (
	"context"
	"testing"

	"koine/internal/demo"
	"koine/kg"
)

func open(t *testing.T) *kg.Store {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// The graph offers the features for a first look: several agents that disagree,
// certainties, named graphs, a long path to follow, and a history.
func TestTheGraphIsWorthALook(t *testing.T) {
	store := open(t)
	done, err := demo.Load(t.Context(), store)
	if err != nil || !done {
		t.Fatalf("got %v, %v", done, err)
	}
	snap, err := store.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	sources := map[kg.AgentID]bool{}
	certainties := map[float64]bool{}
	graphs := map[kg.Term]bool{}
	n, shared := 0, 0
	for s, err := range snap.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		graphs[s.Graph] = true
		if len(s.Assertions) > 1 {
			shared++
		}
		for _, a := range s.Assertions {
			sources[a.Source] = true
			certainties[a.EffectiveCertainty()] = true
		}
	}
	if n < 60 || n > 120 {
		t.Errorf("got %d statements, want 60 to 120", n)
	}
	if len(sources) != 4 || len(certainties) < 5 || len(graphs) != 3 || shared < 2 {
		t.Errorf("got %d sources, %d certainties, %d graphs, %d statements with several sources", len(sources), len(certainties), len(graphs), shared)
	}
	if r := snap.Revision(); r < 8 {
		t.Errorf("got %d commits", r)
	}
	walk(t, snap, demo.Prefixes["finding"]+"2", "supportedBy", "used", "cathode", "madeFrom", "suppliedBy", "locatedIn")
}

// walk follows the predicates from a subject.
func walk(t *testing.T, snap *kg.Snapshot, from string, predicates ...string) {
	t.Helper()
	at := kg.IRI(from)
	for _, p := range predicates {
		var next kg.Term
		for s, err := range snap.Match(kg.Pattern{Subject: at, Predicate: kg.IRI(demo.Prefixes["lab"] + p)}) {
			if err != nil {
				t.Fatal(err)
			}
			next = s.Object
		}
		if next.IsZero() {
			t.Fatalf("nothing is %s of %s", p, at)
		}
		at = next
	}
}

// The statement that Bruno removed is visible in the past only.
func TestSomethingWasTakenBack(t *testing.T) {
	store := open(t)
	if _, err := demo.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	capacities := func(at kg.Revision) (n int) {
		snap, err := store.View(t.Context(), kg.View{At: at})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		for _, err := range snap.Match(kg.Pattern{Predicate: kg.IRI(demo.Prefixes["lab"] + "capacity")}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if now, then := capacities(0), capacities(5); now != 1 || then != 2 {
		t.Errorf("got %d capacities now and %d then, want 1 and 2", now, then)
	}
}

// A store with data is not modified.
func TestAStoreInUseIsLeftAlone(t *testing.T) {
	store := open(t)
	_, err := store.Update(context.Background(), kg.Meta{Principal: kg.Principal{ID: kg.System}}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("o")}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := demo.Load(t.Context(), store); done || err != nil {
		t.Errorf("got %v, %v", done, err)
	}
}
