package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// The hits of a search that is followed, with the texts that make them.
func TestSearchChanged(t *testing.T) {
	b := newSearching(t)
	f := b.follow(t, `subscription { e: searchChanged(query: "lake -salt", resume: "snapshot") { ... on SearchChange { hits { entity { iri label } matches { predicate graph text pieces } } snapshot snapshotEnd commit { revision } } } }`, "", operation.Resume{})
	_, data := f.event()

	if n := strings.Count(data, `"entity"`); n != 2 || !strings.HasSuffix(data, `"snapshot":true,"snapshotEnd":true,"commit":null}}`) {
		t.Errorf("got %s, want two lakes in a snapshot", data)
	}
	b.update(add(iri("erie"), kg.IRI(kg.RDFSLabel), kg.String("Erie")))
	b.update(add(iri("erie"), iri("note"), kg.String("One of the great lakes")))
	b.update(add(iri("erie"), iri("note"), kg.String("The lake has an island"))) // fits already
	b.update(add(iri("dead"), iri("note"), kg.String("Too much salt")), add(iri("dead"), iri("note"), kg.String("A lake in the desert")))
	remove := add(iri("dead"), iri("note"), kg.String("Too much salt"))
	remove.Op = kg.Remove
	b.update(remove)
	hit := func(name, label, text, pieces string, revision int) string {
		return fmt.Sprintf(`{"e":{"hits":[{"entity":{"iri":%q,"label":%s},"matches":[{"predicate":%q,"graph":null,"text":%q,"pieces":%s}]}],"snapshot":false,"snapshotEnd":false,"commit":{"revision":%d}}}`, ex+name, label, ex+"note", text, pieces, revision)
	}
	f.want(hit("erie", `"Erie"`, "One of the great lakes", `["One of the great ","lakes"]`, 10))
	f.want(hit("dead", `null`, "A lake in the desert", `["A ","lake"," in the desert"]`, 13))
	for query, want := range map[string]string{
		`searchChanged(query: "-lake")`:                                                                "has no word to search for",
		`searchChanged(query: "lake", view: {at: "1"})`:                                                "cannot be followed",
		`searchChanged(query: "lake", filter: {match: {var: "x", pattern: {}}})`:                       "match depends on other entities",
		`searchChanged(query: "lake", filter: {minCertainty: 2})`:                                      "minCertainty",
		`searchChanged(query: "lake", filter: {predicates: [` + strings.Repeat(`"ex:a",`, 101) + `]})`: "at most 100",
	} {
		_, err := b.engine.Subscribe(t.Context(), b.request(`subscription { `+query+` { __typename } }`, ""))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
	_, err := newBench(t, graph.Options{}).engine.Subscribe(t.Context(), b.request(`subscription { searchChanged(query: "lake") { __typename } }`, ""))
	if err == nil || !strings.Contains(err.Error(), "search is off") {
		t.Errorf("without search: got %v", err)
	}
}

// The events are the hits of a search after each commit that were none before it; a stream that is cut anywhere resumes without a gap or a duplicate.
func TestSearchChangedAgreesWithSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 12))
	b := newSearching(t)
	vocabulary := strings.Fields("fox foxes owl owls hen bee den ox")
	searches := []string{ // of words that are too short to be misspelt
		`query: "fox"`, `query: "fox owl -hen"`, `query: "\"fox owl\""`, `query: "ow* -\"bee hen\""`, `query: "ox", filter: {predicates: ["ex:p0"]}`,
		`query: "hen", filter: {classes: ["ex:Bird"]}`, `query: "bee", filter: {minCertainty: 0.5}`, `query: "den", filter: {graphs: ["ex:g"]}`, `query: "owl", view: {minCertainty: 0.5}`,
	}
	found := func(arguments string) map[string]bool {
		var answer struct {
			Search struct {
				Nodes []struct{ Entity struct{ Iri string } }
			}
		}
		b.data(`{ search(first: 100, `+arguments+`) { nodes { entity { iri } } } }`, "", &answer)
		set := map[string]bool{}
		for _, n := range answer.Search.Nodes {
			set[n.Entity.Iri] = true
		}
		return set
	}
	type news struct {
		revision kg.Revision
		names    []string
	}
	want := map[string][]news{}
	before := map[string]map[string]bool{}
	for _, s := range searches {
		before[s] = found(s)
	}
	start := b.store.Head()
	for range slowtest.Size(300, 120) {
		var patches []kg.Patch
		for range 1 + random.IntN(4) {
			var list []string
			for range 1 + random.IntN(3) {
				list = append(list, vocabulary[random.IntN(len(vocabulary))])
			}
			p := by("agent://a", []float64{0.2, 0.9}[random.IntN(2)], add(iri(fmt.Sprint("n", random.IntN(8))), iri(fmt.Sprint("p", random.IntN(2))), kg.String(strings.Join(list, " "))))
			if random.IntN(6) == 0 {
				p.Quad.Predicate, p.Quad.Object = kg.IRI(kg.RDFType), iri("Bird")
			}
			switch p.Quad.Graph = kg.DefaultGraph; random.IntN(4) {
			case 0:
				p.Quad.Graph = iri("g")
			case 1:
				p.Quad.Graph = iri("private/ann")
			}
			if p.Op = []kg.Op{kg.Add, kg.Replace, kg.Replace, kg.Remove}[random.IntN(4)]; p.Op == kg.Remove {
				p = kg.Patch{Op: kg.Remove, Quad: p.Quad}
			}
			patches = append(patches, p)
		}
		b.update(patches...)
		for _, s := range searches {
			now := found(s)
			n := news{revision: b.store.Head().Revision}
			for name := range now {
				if !before[s][name] {
					n.names = append(n.names, name)
				}
			}
			if slices.Sort(n.names); n.names != nil {
				want[s] = append(want[s], n)
			}
			before[s] = now
		}
	}
	for _, s := range searches {
		if len(want[s]) < 3 {
			t.Errorf("%s: only %d commits make hits", s, len(want[s]))
		}
		query := `subscription { e: searchChanged(` + s + `) { ... on SearchChange { hits { entity { iri } } commit { revision } } } }`
		f := b.follow(t, query, "", operation.Resume{Start: operation.After, After: start})
		for _, n := range want[s] {
			e, data := f.event()
			var got struct {
				E struct {
					Hits   []struct{ Entity struct{ Iri string } }
					Commit struct{ Revision kg.Revision }
				}
			}
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, h := range got.E.Hits {
				names = append(names, h.Entity.Iri)
			}
			if slices.Sort(names); got.E.Commit.Revision != n.revision || !slices.Equal(names, n.names) {
				t.Fatalf("%s: got %s, want %v at %d", s, data, n.names, n.revision)
			}
			if random.IntN(3) == 0 {
				f.stop()
				f = b.follow(t, query, "", operation.Resume{Start: operation.After, After: e.Position})
			}
		}
		f.stop()
	}
}
