package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
)

// A variable that is null where a value is needed is an error of the root field
// that uses it, made for the caller. The others are answered.
func TestNullForAValue(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, row := range []struct{ head, broken, fragments string }{
		{`$v: Boolean = true`, `e: revision @skip(if: $v)`, ``},
		{`$v: Boolean = true`, `e: revision @include(if: $v) e: revision`, ``},
		{`$v: Boolean = true`, `... @include(if: $v) { e: revision }`, ``},
		{`$v: Boolean = true`, `...F @skip(if: $v)`, `fragment F on Query { e: revision }`},
		{`$v: Boolean = true`, `...F`, `fragment F on Query { e: stats { ... on Stats @skip(if: $v) { statements } } }`},
		{`$v: Boolean = true`, `e: entity(iri: "ex:ada") { iri @include(if: $v) }`, ``},
		{`$v: Boolean = true`, `e: entities { nodes { ...F @include(if: $v) } }`, `fragment F on Entity { iri }`},
		{`$v: Direction = OUT`, `e: entity(iri: "ex:ada") { ...F }`, `fragment F on Entity { degree(direction: $v) }`},
		{`$v: SortDirection = ASC`, `e: entities(orderBy: {by: IRI, direction: $v}) { nodes { iri } }`, ``},
		{`$v: Boolean = true`, `e: match(pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}, distinct: $v) { columns }`, ``},
	} {
		for _, budget := range []string{"", "@budget(maxBytes: 3000)"} {
			query := `query (` + row.head + `) ` + budget + ` { a: revision ` + row.broken + ` b: entity(iri: "ex:ada") { iri } } ` + row.fragments
			r := b.execute(query, `{"v": null}`)
			if got, want := string(r.Data), `{"a":4,"e":null,"b":{"iri":"https://example.org/ada"}}`; got != want {
				t.Errorf("%s: got %s", query, got)
			}
			if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "INVALID" || r.Errors[0].Path.String() != "e" || !strings.Contains(r.Errors[0].Message, "$v is null") {
				t.Errorf("%s: got %v %v", query, r.Errors, r.Errors[0].Extensions)
			}
			if without := b.execute(query, `{}`); row.broken[3] != 'm' && len(without.Errors) > 0 {
				t.Errorf("%s: with the default: %v", query, without.Errors)
			}
		}
	}
	m := b.execute(`mutation ($v: Boolean = true) { a: applyPatches(input: {patches: []}) { success @skip(if: $v) } }`, `{"v": null}`)
	if len(m.Errors) != 1 || m.Errors[0].Extensions["code"] != "INVALID" || string(m.Data) != `{"a":null}` {
		t.Errorf("%s %v", m.Data, m.Errors)
	}
	_, err := b.engine.Subscribe(t.Context(), b.request(`subscription ($v: Boolean = true) { statementChanged { __typename @skip(if: $v) } }`, `{"v": null}`))
	if err == nil || !strings.Contains(fmt.Sprint(err), "$v is null") {
		t.Errorf("got %v", err)
	}
	if b.log.Len() > 0 {
		t.Errorf("logged: %s", b.log)
	}
}
