package shapes_test

import (
	"fmt"
	"testing"
	"time"

	"koine/kg"
)

// BenchmarkJudgingAmongTargets compares the validation of an update of one person in a
// graph of 10 persons with that in one of 10,000, alternating: the cost should be the
// same. It uses dry runs, so that only execution and validation are measured.
func BenchmarkJudgingAmongTargets(b *testing.B) {
	few, many := peopled(b, 10), peopled(b, 10_000)
	add := parse(b, `ex:ann a ex:Person ; ex:name "Ann" ; ex:worksFor ex:acme .`, kg.DefaultGraph)
	m := by("ann")
	m.DryRun = true
	once := func(store *kg.Store) time.Duration {
		start := time.Now()
		r, err := write(b, store, m, add, nil)
		if err != nil || r.Verdict.Outcome != kg.Accepted {
			b.Fatalf("%+v, %v", r, err)
		}
		return time.Since(start)
	}
	var inFew, inMany time.Duration
	for b.Loop() {
		inFew += once(few)
		inMany += once(many)
	}
	b.ReportMetric(float64(inFew.Nanoseconds())/float64(b.N), "ns/among-10")
	b.ReportMetric(float64(inMany.Nanoseconds())/float64(b.N), "ns/among-10000")
	b.ReportMetric(float64(inMany)/float64(inFew), "ratio")
}

// peopled returns a store with n persons that conform to a shape.
func peopled(b *testing.B, n int) *kg.Store {
	store, _ := judgedStore(b, kg.Options{})
	put(b, store, personShape+`ex:T a sh:NodeShape ; sh:targetSubjectsOf ex:worksFor ; sh:property [ sh:path ( ex:worksFor ex:name ) ; sh:minCount 1 ] .`)
	if _, err := write(b, store, by("ann"), parse(b, `ex:acme ex:name "Acme" .`, kg.DefaultGraph), nil); err != nil {
		b.Fatal(err)
	}
	var quads []kg.Quad
	for i := range n {
		person := ex(fmt.Sprintf("p%d", i))
		for p, o := range map[kg.Term]kg.Term{kg.IRI(kg.RDFType): ex("Person"), ex("name"): kg.String(fmt.Sprint("Person ", i)), ex("worksFor"): ex("acme")} {
			quads = append(quads, kg.Quad{Subject: person, Predicate: p, Object: o})
		}
	}
	for len(quads) > 0 {
		k := min(len(quads), 9_000) // three per person
		if r, err := write(b, store, by("ann"), quads[:k], nil); err != nil || !r.Committed {
			b.Fatalf("%+v, %v", r.Verdict, err)
		}
		quads = quads[k:]
	}
	return store
}
