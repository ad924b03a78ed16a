package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// TestTermsAsEntities proves that predicates and classes are shown as the entities that
// entity(iri) shows, in the same view: in lists, in changes and under a budget. Those of a
// list are loaded together.
func TestTermsAsEntities(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{Complexity: 1 << 30}})
	b.update(
		add(iri("knows"), kg.IRI("http://www.w3.org/2000/01/rdf-schema#label"), kg.String("knows of")),
		add(iri("knows"), iri("inverse"), iri("known")),
		add(iri("Person"), kg.IRI("http://www.w3.org/2000/01/rdf-schema#label"), kg.String("a person")),
	)
	start := b.store.Head()
	for i := range 30 {
		b.update(add(iri(fmt.Sprint("a", i)), iri("knows"), iri("b")), add(iri(fmt.Sprint("a", i)), kg.IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("Person")))
	}
	const whole = `{ iri label out(first: 5) { nodes { predicate } } value(predicate: "ex:inverse") }`
	entity := func(name string) string {
		var got struct{ Entity json.RawMessage }
		b.dataAs(reader, `{ entity(iri: "`+name+`") `+whole+` }`, &got)
		return string(got.Entity)
	}
	knows, person := entity("ex:knows"), entity("ex:Person")
	if !strings.Contains(knows, `"label":"knows of"`) || !strings.Contains(person, `"label":"a person"`) {
		t.Fatalf("the entities are %s and %s", knows, person)
	}
	for _, row := range []struct{ query, want string }{
		{`{ statements(where: {predicate: "ex:knows"}, first: 2) { nodes { predicate predicateEntity ` + whole + ` } } }`,
			`{"statements":{"nodes":[P,P]}}`},
		{`{ statements(where: {predicate: "ex:knows"}, first: 1, budget: {maxBytes: 4000}) { nodes { predicate predicateEntity ` + whole + ` } } }`, `{"statements":{"nodes":[P]}}`},
		{`{ changes(after: "` + b.store.FormatPosition(start) + `", where: {predicate: "ex:knows"}, first: 1) { nodes { statement { predicate predicateEntity ` + whole + ` } } } }`,
			`{"changes":{"nodes":[{"statement":P}]}}`},
		{`{ entity(iri: "ex:a1") { predicates { count iri entity ` + whole + ` } } }`, `{"entity":{"predicates":[{"count":1,"iri":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type","entity":T},{"count":1,"iri":"https://example.org/knows","entity":K}]}}`},
		{`{ vocabulary { predicates(first: 2) { nodes { iri entity ` + whole + ` } } classes(first: 1) { nodes { count again: entity { label } entity ` + whole + ` } } } }`,
			`{"vocabulary":{"predicates":{"nodes":[{"iri":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type","entity":T},{"iri":"https://example.org/knows","entity":K}]},"classes":{"nodes":[{"count":30,"again":{"label":"a person"},"entity":C}]}}}`},
		{`{ vocabulary(view: {graphs: ["ex:none"]}) { predicates { nodes { entity { iri } } } classes { nodes { entity { iri } } } } }`, `{"vocabulary":{"predicates":{"nodes":[]},"classes":{"nodes":[]}}}`},
		{`{ entity(iri: "ex:a1") { predicates { iri entity { value(path: "ex:a//") } } } }`, ""},
	} {
		result := b.runAs(reader, row.query)
		want := strings.NewReplacer("P", `{"predicate":"https://example.org/knows","predicateEntity":`+knows+`}`, "K", knows, "C", person,
			"T", `{"iri":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type","label":null,"out":{"nodes":[]},"value":null}`).Replace(row.want)
		switch {
		case row.want == "": // the errors are at the fields of the entities
			if len(result.Errors) == 0 || result.Errors[0].Path.String() != "entity.predicates[0].entity.value" {
				t.Errorf("%s: got %s with %v", row.query, result.Data, result.Errors)
			}
		case len(result.Errors) > 0 || string(result.Data) != want:
			t.Errorf("%s:\ngot  %s %v\nwant %s", row.query, result.Data, result.Errors, want)
		}
	}
	f := b.follow(t, `subscription { e: statementChanged(where: {predicate: "ex:knows"}) { ... on StatementChange { statement { predicateEntity `+whole+` } } } }`, "", operation.Resume{Start: operation.After, After: start})
	f.want(`{"e":{"statement":{"predicateEntity":` + knows + `}}}`)

	reads := func(query string) int64 {
		result := b.runAs(reader, query)
		if len(result.Errors) > 0 {
			t.Fatalf("%s: %v", query, result.Errors)
		}
		return result.StatementsRead
	}
	for _, query := range []string{`{ statements(where: {predicate: "ex:knows"}, first: %d) { nodes { %s } } }`} {
		one := reads(fmt.Sprintf(query, 1, `predicateEntity { label }`)) - reads(fmt.Sprintf(query, 1, `predicate`))
		all := reads(fmt.Sprintf(query, 30, `predicateEntity { label }`)) - reads(fmt.Sprintf(query, 30, `predicate`))
		if one == 0 || one != all {
			t.Errorf("%s: the predicate of one statement takes %d reads, that of thirty %d", query, one, all)
		}
	}
}

// A literal that is an object of rdf:type is no class: classes have IRIs. It is a value to group by.
func TestLiteralTypeIsNoClass(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(
		add(iri("a"), kg.IRI(kg.RDFType), iri("Person")),
		add(iri("b"), kg.IRI(kg.RDFType), kg.String("person")),
	)
	for _, row := range []struct{ query, want string }{
		{`{ vocabulary { classes { totalCount nodes { iri count } } } stats { classes } }`,
			`{"vocabulary":{"classes":{"totalCount":1,"nodes":[{"iri":"https://example.org/Person","count":1}]}},"stats":{"classes":1}}`},
		{`{ entities(first: 1) { groups(by: [{as: "type", property: "rdf:type"}], having: [{as: "type", exists: true}]) { key(as: "type") count } } }`,
			`{"entities":{"groups":[{"key":"person","count":1},{"key":"https://example.org/Person","count":1}]}}`},
	} {
		if result := b.runAs(reader, row.query); len(result.Errors) > 0 || string(result.Data) != row.want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", row.query, result.Data, result.Errors, row.want)
		}
	}
}
