package shapes_test

import (
	"strings"
	"testing"

	"koine/internal/observertest"
	"koine/internal/rdf"
	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

const prefixes = `
@prefix ex: <http://example.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
`

func ex(name string) kg.Term { return kg.IRI("http://example.org/" + name) }

var admin = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{kg.Anybody}, Method: "open"}

func by(name string) kg.Meta {
	return kg.Meta{Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}}
}

// judgedStore is a store with a Set as its verifier.
func judgedStore(t testing.TB, o kg.Options) (*kg.Store, *shapes.Set) {
	t.Helper()
	set := &shapes.Set{}
	store := openJudged(t, t.TempDir(), set, o)
	return store, set
}

func openJudged(t testing.TB, dir string, set *shapes.Set, o kg.Options) *kg.Store {
	t.Helper()
	observertest.Replay(t, dir)
	o.Verifier, o.OnSystemChange, o.ReserveBytes = set, set.Follow, 1
	store, err := kg.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := set.Load(slowtest.Context(t), store); err != nil {
		t.Fatal(err)
	}
	return store
}

// parse parses Turtle with the prefixes of the tests.
func parse(t testing.TB, turtle string, graph kg.Term) []kg.Quad {
	t.Helper()
	var out []kg.Quad
	for q, err := range rdf.Read(strings.NewReader(prefixes+turtle), rdf.Turtle, rdf.Options{Graph: graph}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

func put(t testing.TB, store *kg.Store, turtle string) {
	t.Helper()
	quads, err := shapes.Parse(prefixes + turtle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads); err != nil {
		t.Fatal(err)
	}
}

// write commits an update that adds and removes quads.
func write(t testing.TB, store *kg.Store, m kg.Meta, add, remove []kg.Quad) (kg.Receipt, error) {
	t.Helper()
	return store.Update(slowtest.Context(t), m, func(tx *kg.Tx) error {
		for _, q := range remove {
			if err := tx.Apply(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
				return err
			}
		}
		for _, q := range add {
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

// accepts and refuses add Turtle to the default graph and check the verdict.
func accepts(t testing.TB, store *kg.Store, turtle string) kg.Receipt {
	t.Helper()
	r, err := write(t, store, by("ann"), parse(t, turtle, kg.DefaultGraph), nil)
	if err != nil || r.Verdict.Outcome != kg.Accepted {
		t.Fatalf("%s: %+v, %v", turtle, r.Verdict, err)
	}
	return r
}

func refuses(t testing.TB, store *kg.Store, turtle string, details ...string) {
	t.Helper()
	r, err := write(t, store, by("ann"), parse(t, turtle, kg.DefaultGraph), nil)
	refused(t, r, err, details...)
}

func refused(t testing.TB, r kg.Receipt, err error, details ...string) {
	t.Helper()
	if err != nil || r.Verdict.Outcome != kg.Rejected || r.Verdict.Reason != "Constraint Violation" || r.Affected != 0 || r.Committed {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, d := range details {
		if !strings.Contains(r.Verdict.Details, d) {
			t.Errorf("the details lack %q:\n%s", d, r.Verdict.Details)
		}
	}
}
