package shapes_test

import (
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

const personShape = `
ex:PersonShape a sh:NodeShape ;
	sh:targetClass ex:Person ;
	sh:property [ sh:path ex:name ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:string ] .
`

func TestAnUpdateIsRefusedForWhatItBrings(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	accepts(t, store, `ex:old a ex:Person .`) // before there is a shape
	put(t, store, personShape)

	accepts(t, store, `ex:ann a ex:Person ; ex:name "Ann" .`)
	refuses(t, store, `ex:bob a ex:Person .`, "http://example.org/bob, http://example.org/name: has 0 of at least 1 values (shape http://example.org/PersonShape)")
	refuses(t, store, `ex:ann ex:name "Anna" .`, "has 2 values, at most 1 are allowed")
	refuses(t, store, `ex:bob a ex:Person ; ex:name 5 .`, `"5"^^<http://www.w3.org/2001/XMLSchema#integer>`, "is not of the datatype http://www.w3.org/2001/XMLSchema#string")

	r := accepts(t, store, `ex:old ex:age 7 .`)
	if r.Verdict.Details != "" {
		t.Errorf("what no shape reads was judged: %s", r.Verdict.Details)
	}
	r = accepts(t, store, `ex:Other rdfs:subClassOf ex:Person . ex:old a ex:Other .`)
	if want := "existing: http://example.org/old, http://example.org/name: has 0 of at least 1 values (shape http://example.org/PersonShape)"; r.Verdict.Details != want {
		t.Errorf("got %q, want %q", r.Verdict.Details, want)
	}

	// A dry run has the same verdict.
	m := by("ann")
	m.DryRun = true
	r, err := write(t, store, m, parse(t, `ex:bob a ex:Person .`, kg.DefaultGraph), nil)
	refused(t, r, err)
}

func TestShapesOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	store := openJudged(t, dir, &shapes.Set{}, kg.Options{})
	put(t, store, personShape)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = openJudged(t, dir, &shapes.Set{}, kg.Options{})
	refuses(t, store, `ex:bob a ex:Person .`)
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("PersonShape")}); err != nil {
		t.Fatal(err)
	}
	accepts(t, store, `ex:bob a ex:Person .`)
}
