package provenance_test

import (
	"strings"
	"testing"
	"time"

	"koine/internal/observertest"
	"koine/internal/provenance"
	"koine/internal/rdf"
	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

const prefixes = `
@prefix ex: <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
`

func ex(name string) kg.Term { return kg.IRI("http://example.org/" + name) }

var root = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}

// principal returns an agent that may act only for itself.
func principal(name string) kg.Principal {
	return kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}
}

func meta(p kg.Principal) kg.Meta { return kg.Meta{Principal: p} }

// world is a store with its observers.
type world struct {
	testing.TB
	*kg.Store
	shapes      shapes.Set
	quarantines provenance.Quarantines
	now         time.Time
}

func newWorld(t testing.TB, o kg.Options) *world {
	t.Helper()
	w := &world{TB: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	o.ReserveBytes, o.Distrust = 1, &w.quarantines
	o.OnSystemChange = func(c *kg.Commit) { w.shapes.Follow(c); w.quarantines.Follow(c) }
	if o.Clock == nil { // only the committer asks while a test waits for it
		o.Clock = func() time.Time { return w.now }
	}
	dir := t.TempDir()
	observertest.Replay(t, dir)
	store, err := kg.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w.Store = store
	return w
}

// turtle reads statements into a graph.
func (w *world) turtle(text string, graph kg.Term) (out []kg.Quad) {
	w.Helper()
	for q, err := range rdf.Read(strings.NewReader(prefixes+text), rdf.Turtle, rdf.Options{Graph: graph}) {
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

// write makes one commit of patches.
func (w *world) write(p kg.Principal, patches ...kg.Patch) kg.Revision {
	w.Helper()
	r, err := w.Update(slowtest.Context(w), meta(p), func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return r.Revision
}

// add adds Turtle to the default graph.
func (w *world) add(name, text string) kg.Revision {
	w.Helper()
	return w.write(principal(name), w.patches(kg.Add, text, kg.DefaultGraph)...)
}

func (w *world) remove(name, text string) kg.Revision {
	w.Helper()
	return w.write(principal(name), w.patches(kg.Remove, text, kg.DefaultGraph)...)
}

func (w *world) patches(op kg.Op, text string, graph kg.Term) (out []kg.Patch) {
	w.Helper()
	for _, q := range w.turtle(text, graph) {
		out = append(out, kg.Patch{Op: op, Quad: q})
	}
	return out
}

func (w *world) put(text string) {
	w.Helper()
	quads, err := shapes.Parse(prefixes + text)
	if err == nil {
		_, err = shapes.Put(slowtest.Context(w), w.Store, meta(root), quads)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// view opens a snapshot for as long as the test lasts.
func (w *world) view(v kg.View) *kg.Snapshot {
	w.Helper()
	if v.Principal.ID == "" {
		v.Principal = root
	}
	s, err := w.View(slowtest.Context(w), v)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(s.Close)
	return s
}

// standing lists the statements of the default graph in a view, each in short form with
// its sources.
func (w *world) standing(v kg.View) string {
	w.Helper()
	var b strings.Builder
	for st, err := range w.view(v).Match(kg.Pattern{}) {
		if err != nil {
			w.Fatal(err)
		}
		b.WriteString(short(st) + "\n")
	}
	return b.String()
}

func short(st kg.Statement) string {
	name := func(t kg.Term) string { return strings.TrimPrefix(t.Name(), "http://example.org/") }
	text := name(st.Subject) + " " + name(st.Predicate) + " " + name(st.Object)
	for _, a := range st.Assertions {
		text += " /" + strings.TrimPrefix(string(a.Source), "agent://")
	}
	return text
}
