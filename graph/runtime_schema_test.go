package graph_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"koine"
	"koine/graph"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/kg"
)

// person is a type that is made at run time: what the test reads of an entity.
type person struct{ iri kg.Term }

// withPerson returns a schema with a type Person over entities, and the field
// Query.person.
func withPerson(t *testing.T, base *executor.Schema) *executor.Schema {
	t.Helper()
	ast, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: koine.Schema + `
		extend type Query { person(iri: IRI!): Person }
		type Person { name: String! iri: IRI! entity: Entity friend: Person }`})
	if err != nil {
		t.Fatal(err)
	}
	table := &executor.Object{Name: "Person", Implementors: []string{"Person"}}
	write := executor.ObjectOf[person](table)
	appendText := func(b []byte, s string) []byte { return append(append(append(b, '"'), s...), '"') }
	name := func(p *person, _ context.Context) (string, error) {
		_, after, ok := strings.Cut(p.iri.Value(), "example.org/")
		if !ok {
			return "", kg.Errorf(kg.CodeInvalid, "%s has no name", p.iri)
		}
		return after, nil
	}
	table.Fields = map[string]*executor.Field{
		"name": executor.Read(name, executor.Leaf(appendText)),
		"iri":  executor.Get(func(p *person) string { return p.iri.Value() }, executor.Leaf(appendText)),
		"entity": executor.Plan(func(p *person, ctx context.Context, f *executor.Selected) (executor.Value, error) {
			return knowledge.ReadEntity(ctx, f, p.iri)
		}, executor.WriteValue),
		"friend": executor.Get(func(*person) *person { return &person{kg.IRI("https://nowhere.test/x")} }, write),
	}
	query := *base.Query
	query.Fields = maps.Clone(query.Fields)
	query.Fields["person"] = &executor.Field{
		Args: func(c *executor.Coercer, raw map[string]any) (any, error) {
			return knowledge.UnmarshalIRI(c.Ctx, raw["iri"])
		},
		Write: func(w *executor.Writer, s *executor.Selected, _ any) error {
			return write(w, s, &person{s.Args.(kg.Term)})
		},
	}
	out := *base
	out.AST, out.Query = ast, &query
	return &out
}

// A type with fields over entities is added to a running engine, and removed.
func TestTypesAtRunTime(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(ex + "ada"), Predicate: kg.IRI(kg.RDFSLabel), Object: kg.String("Ada"), Graph: kg.DefaultGraph}})
	const query = `{ p: person(iri: "ex:ada") { __typename name ...F friend { iri name } } revision } fragment F on Person { entity { iri label } }`
	old := b.engine.Schema()
	refused := func(when string) {
		t.Helper()
		if r := b.execute(query, ""); len(r.Errors) == 0 || r.Data != nil {
			t.Errorf("%s: got %s %v", when, r.Data, r.Errors)
		}
	}
	refused("before")
	b.engine.SetSchema(withPerson(t, old))
	r := b.execute(query, "")
	want := `{"p":{"__typename":"Person","name":"ada","entity":{"iri":"https://example.org/ada","label":"Ada"},"friend":null},"revision":`
	if !strings.HasPrefix(string(r.Data), want) || len(r.Errors) != 1 || r.Errors[0].Path.String() != "p.friend.name" {
		t.Errorf("got %s %v, want %s", r.Data, r.Errors, want)
	}
	if r := b.execute(`{ __type(name: "Person") { fields { name } } person(iri: "no iri") { iri } entity(iri: "ex:ada") { label } }`, ""); len(r.Errors) != 1 ||
		string(r.Data) != `{"__type":{"fields":[{"name":"name"},{"name":"iri"},{"name":"entity"},{"name":"friend"}]},"person":null,"entity":{"label":"Ada"}}` {
		t.Errorf("got %s %v", r.Data, r.Errors)
	}
	b.engine.SetSchema(old)
	refused("after")
	if r := b.execute(`{ entity(iri: "ex:ada") { label } }`, ""); len(r.Errors) != 0 {
		t.Errorf("got %v", r.Errors)
	}
}
