package graph_test

import (
	"fmt"
	"testing"

	"koine/graph"
	"koine/kg"
)

// performances fills the store with films, each with three performances, each of an
// actor with a name. Every tenth actor plays in many.
func (b *bench) performances(n int) {
	b.t.Helper()
	var patches []kg.Patch
	for i := range n {
		film := iri(fmt.Sprintf("film/%d", i))
		patches = append(patches, add(film, kg.IRI(kg.RDFType), iri("Film")), add(film, iri("title"), kg.String(fmt.Sprintf("The film with the number %d", i))))
		for k := range 3 {
			performance, actor := iri(fmt.Sprintf("performance/%d-%d", i, k)), iri(fmt.Sprintf("actor/%d", (i*7+k*k)%(n+9)))
			patches = append(patches, add(film, iri("starring"), performance), add(performance, iri("actor"), actor),
				add(actor, iri("name"), kg.String("Actor "+actor.Value())), add(actor, iri("age"), kg.Integer(int64(20+i%60))))
		}
	}
	b.update(patches...)
}

// filmQuery requests films, their performances, the actors of these, and their names.
const filmQuery = `query ($n: Int!) { entities(first: $n, where: {type: {eq: "ex:Film"}}) { nodes { iri
	out(where: {predicate: {eq: "ex:starring"}}) { totalCount nodes { object { ... on Entity {
		out(where: {predicate: {eq: "ex:actor"}}) { nodes { predicate object { ... on Entity {
			iri name: value(predicate: "ex:name") age: value(predicate: "ex:age") degree } } } } } } } } } } }`

// TestPassesAreIndependentOfRows proves that each level of an answer is read in the same
// number of walks over the index, regardless of its number of rows. A walk is counted by
// kg.Snapshot.Scans: an index order entered, and left for good.
func TestPassesAreIndependentOfRows(t *testing.T) {
	const most = 100
	b := newBench(t, graph.Options{})
	b.performances(most)
	queries := map[string]string{
		"films, performances, actors, names": filmQuery,
		"subjects of statements":             `query ($n: Int!) { statements(first: $n, where: {predicate: {eq: "ex:actor"}}) { nodes { subject { iri types in(first: 3) { nodes { subject { iri title: values(predicate: "ex:title") label } } } } } } }`,
		"assertions":                         `query ($n: Int!) { entities(first: $n, where: {type: {eq: "ex:Film"}}) { nodes { out { nodes { certainty assertedBy revision } } } } }`,
		"counts":                             `query ($n: Int!) { entities(first: $n, where: {type: {eq: "ex:Film"}}) { nodes { degree predicates { iri count } in { totalCount } } } }`,
		"filtered":                           `query ($n: Int!) { entities(first: $n, where: {property: [{predicate: "ex:title", startsWith: "The"}, {predicate: "ex:starring"}]}) { nodes { title: value(predicate: "ex:title") } } }`,
		"paths":                              `query ($n: Int!) { entities(first: $n, where: {type: {eq: "ex:Film"}}) { nodes { follow(path: "ex:starring/ex:actor", where: {property: {predicate: "ex:age"}}) { totalCount nodes { iri name: value(predicate: "ex:name") } } values(path: "ex:starring/ex:actor/ex:name") } } }`,
	}
	for name, query := range queries {
		t.Run(name, func(t *testing.T) {
			var scans, read []int64
			for _, n := range []int{2, 10, most} {
				r := b.of(t).execute(query, fmt.Sprintf(`{"n": %d}`, n))
				if len(r.Errors) > 0 {
					t.Fatal(r.Errors)
				}
				scans, read = append(scans, r.Scans), append(read, r.StatementsRead)
			}
			if scans[0] == 0 || scans[0] != scans[1] || scans[0] != scans[2] {
				t.Errorf("2, 10 and %d rows are read in %v scans, want the same number", most, scans)
			}
			if read[0] >= read[2] {
				t.Errorf("2, 10 and %d rows: %v statements read, want more of more", most, read)
			}
		})
	}
}
