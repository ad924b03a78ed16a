package systemgraph_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"koine/internal/systemgraph"
	"koine/kg"
)

var (
	system  = kg.SystemGraph
	subject = kg.IRI("urn:koine:thing:1")
	meta    = kg.Meta{Principal: kg.Principal{ID: "agent://root", Method: "key"}}
)

// seen notes the calls of a table.
type seen map[kg.Term]systemgraph.Record

func (s seen) changed(subject kg.Term, r systemgraph.Record) {
	if r == nil {
		delete(s, subject)
		return
	}
	s[subject] = r
}

func write(t *testing.T, store *kg.Store, subject kg.Term, r systemgraph.Record) {
	t.Helper()
	err := systemgraph.Update(t.Context(), store, meta, func(tx *kg.Tx) error { return systemgraph.Write(tx, system, subject, r) })
	if err != nil {
		t.Fatal(err)
	}
}

func sameRecord(a, b systemgraph.Record) bool {
	return maps.EqualFunc(a, b, func(x, y []kg.Term) bool {
		x, y = slices.Clone(x), slices.Clone(y)
		slices.SortFunc(x, kg.Term.Compare)
		slices.SortFunc(y, kg.Term.Compare)
		return slices.Equal(x, y)
	})
}

// A table that follows equals one that loads, after each change.
func TestFollowingIsLoading(t *testing.T) {
	followed := seen{}
	table := systemgraph.NewTable(system, "urn:koine:thing:", followed.changed)
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{OnSystemChange: table.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := table.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	other := kg.IRI("urn:koine:thing:2")
	for i, step := range []func(){
		func() {
			write(t, store, subject, systemgraph.Record{systemgraph.Type: systemgraph.Class("Thing"), "p": systemgraph.Values("a", "b"), "q": systemgraph.Values("c")})
		},
		func() { write(t, store, subject, systemgraph.Record{"p": systemgraph.Values("b", "d")}) },
		func() { write(t, store, subject, systemgraph.Record{"q": nil}) },
		func() { write(t, store, other, systemgraph.Record{"p": systemgraph.Values("a")}) },
		func() {
			write(t, store, kg.IRI("urn:koine:elsewhere"), systemgraph.Record{"p": systemgraph.Values("a")})
		},
		func() { // a second source backs it: nothing changes, also when the first withdraws
			back(t, store, kg.Patch{Op: kg.Add, Source: "agent://x", Quad: kg.Quad{Subject: subject, Predicate: systemgraph.Property("p"), Object: kg.String("b"), Graph: system}})
			back(t, store, kg.Patch{Op: kg.Remove, Source: "agent://root", Quad: kg.Quad{Subject: subject, Predicate: systemgraph.Property("p"), Object: kg.String("b"), Graph: system}})
		},
		func() { write(t, store, other, systemgraph.Record{"p": nil}) },
	} {
		step()
		loaded := seen{}
		fresh := systemgraph.NewTable(system, "urn:koine:thing:", loaded.changed)
		if err := fresh.Load(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(followed, loaded, sameRecord) || table.Len() != fresh.Len() {
			t.Errorf("step %d: followed %v, loaded %v", i, followed, loaded)
		}
	}
	r := followed[subject]
	if !r.Is("Thing") || r.Is("Other") || !slices.Equal(r.Texts("p"), []string{"b", "d"}) || r.Text("q") != "" || len(followed) != 1 {
		t.Errorf("at the end: %v", followed)
	}
}

func back(t *testing.T, store *kg.Store, p kg.Patch) {
	t.Helper()
	if _, err := store.Update(t.Context(), meta, func(tx *kg.Tx) error { return tx.ApplyOwn(p) }); err != nil {
		t.Fatal(err)
	}
}

// A verdict other than acceptance is an error: records are never held.
func TestUpdateIsNotHeld(t *testing.T) {
	for outcome, code := range map[kg.Outcome]kg.Code{kg.Rejected: kg.CodeConstraintViolation, kg.Held: kg.CodeConstraintViolation} {
		store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Verifier: verdict{outcome}}})
		if err != nil {
			t.Fatal(err)
		}
		err = systemgraph.Update(t.Context(), store, meta, func(tx *kg.Tx) error {
			return systemgraph.Write(tx, system, subject, systemgraph.Record{"p": systemgraph.Values("a")})
		})
		if kg.CodeOf(err) != code || store.Head().Revision != 0 {
			t.Errorf("%v: got %v, revision %d", outcome, err, store.Head().Revision)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

type verdict struct{ outcome kg.Outcome }

func (v verdict) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	return kg.Verdict{Outcome: v.outcome, Reason: fmt.Sprint("because of ", v.outcome)}, nil
}
