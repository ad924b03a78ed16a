package graph_test

import (
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/slowtest"
)

func loadSchema(t *testing.T, sdl string) *ast.Schema {
	t.Helper()
	s, err := gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: sdl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema describes each of its parts.
func TestSchemaIsDescribed(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	described := func(what, description string) {
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", what)
		}
	}
	n := 0
	for name, def := range s.Types {
		if def.BuiltIn {
			continue
		}
		n++
		described(name, def.Description)
		for _, f := range def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			described(name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				described(name+"."+f.Name+"("+a.Name+")", a.Description)
			}
		}
		for _, v := range def.EnumValues {
			described(name+"."+v.Name, v.Description)
		}
	}
	if n < 40 {
		t.Errorf("the schema has only %d types", n)
	}
}

// The served schema is the file at the root of the repository.
func TestSDLIsTheFile(t *testing.T) {
	want, err := os.ReadFile("../schema.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	if got := newBench(t, graph.Options{}).engine.SDL(); got != string(want) {
		t.Error("the schema that is served is not the one in schema.graphqls: generate anew")
	}
}

// selectAll selects every field of a type, as deep as there is no cycle, with
// the arguments that it needs.
func selectAll(s *ast.Schema, name string, open map[string]bool) string {
	def := s.Types[name]
	switch {
	case def.IsLeafType():
		return ""
	case open[name]:
		return " { __typename }"
	}
	open[name] = true
	defer delete(open, name)
	b := " { __typename"
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		b += " " + f.Name
		if f.Arguments.ForName("predicate") != nil {
			b += `(predicate: "ex:p")`
		}
		if f.Name == "follow" {
			b += `(path: "ex:p+", first: 1)`
		} else if f.Arguments.ForName("first") != nil && f.Type.Elem == nil {
			b += "(first: 1)"
		}
		if f.Arguments.ForName("var") != nil {
			b += `(var: "s")`
		}
		if f.Arguments.ForName("as") != nil {
			b += `(as: "count")`
		}
		b += selectAll(s, f.Type.Name(), open)
	}
	if def.IsAbstractType() {
		for _, t := range s.GetPossibleTypes(def) {
			b += " ... on " + t.Name + selectAll(s, t.Name, open)
		}
	}
	return b + " }"
}

// Every field of the schema can be requested: none is missing in the plans.
func TestEveryFieldIsAnswered(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{Limits: graph.Limits{Fields: 1 << 20, Depth: 100, Complexity: 1 << 30, Tokens: 1 << 20, Repeats: 1 << 20}})
	b.team()
	s := loadSchema(t, b.engine.SDL())
	for _, q := range []string{
		`{ entity(iri: "ex:ada")` + selectAll(s, "Entity", map[string]bool{}) + ` }`,
		`{ node(id: "https://example.org/ada") { ... on Entity` + selectAll(s, "Entity", map[string]bool{}) + ` ... on Statement { s:__typename } } }`,
		`{ entities` + selectAll(s, "EntityConnection", map[string]bool{}) + ` }`,
		`{ statements` + selectAll(s, "StatementConnection", map[string]bool{}) + ` }`,
		`{ shortestPaths(from: "ex:ada", to: "ex:bob")` + selectAll(s, "GraphPath", map[string]bool{}) + ` }`,
		`{ changes(after: "earliest")` + selectAll(s, "ChangeConnection", map[string]bool{}) + ` }`,
		`{ diff(from: 1)` + selectAll(s, "DiffConnection", map[string]bool{}) + ` }`,
		`{ match(pattern: {triples: [{s: "?s", p: "ex:knows", o: "?o"}]}, explain: true)` + selectAll(s, "MatchConnection", map[string]bool{}) + ` }`,
		`{ vocabulary` + selectAll(s, "Vocabulary", map[string]bool{}) + ` stats` + selectAll(s, "Stats", map[string]bool{}) + ` }`,
		`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}}}]})` + selectAll(s, "ApplyPatchesPayload", map[string]bool{}) + ` }`,
	} {
		if r := b.execute(q, ""); len(r.Errors) > 0 || len(r.Data) < 100 {
			t.Errorf("%.60s…: got %.200s %v\n%s", q, r.Data, r.Errors, b.log.String())
		}
	}
	f := b.follow(t, `subscription { statementChanged(resume: "earliest")`+selectAll(s, "StatementEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	f = b.follow(t, `subscription { matchChanged(pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}, resume: "earliest")`+selectAll(s, "MatchEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	f = b.follow(t, `subscription { entityChanged(iri: "ex:ada", depth: 1, resume: "earliest")`+selectAll(s, "EntityEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	if log := b.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// Introspection works, because tools build on it.
func TestIntrospection(t *testing.T) {
	b := newBench(t, graph.Options{})
	var data struct {
		Schema struct {
			QueryType struct{ Name string }
			Types     []struct{ Name, Description string }
		} `json:"__schema"`
	}
	b.data(`{ __schema { queryType { name } types { kind name description fields(includeDeprecated: true) { name args { name type { ...T } } type { ...T } } inputFields { name type { ...T } } enumValues { name } possibleTypes { name } } directives { name locations args { name } } } }
		fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`, "", &data)
	if data.Schema.QueryType.Name != "Query" || len(data.Schema.Types) < 40 {
		t.Errorf("got the query type %q and %d types", data.Schema.QueryType.Name, len(data.Schema.Types))
	}
}
