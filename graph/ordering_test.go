package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

// Entities are ordered by several keys, each with its own direction and place
// for those without a value.
func TestOrders(t *testing.T) {
	b := newBench(t, graph.Options{})
	n, m := iri("n"), iri("m")
	b.update(
		add(iri("a"), n, kg.Integer(2)), add(iri("a"), n, kg.Integer(5)), add(iri("a"), m, kg.String("x")),
		add(iri("b"), n, kg.Typed("2.0", kg.XSDDecimal)), add(iri("b"), m, kg.String("y")),
		add(iri("c"), m, kg.String("z")), add(iri("c"), m, iri("a")),
		add(iri("d"), n, kg.Integer(3)), add(iri("d"), m, iri("a")), add(iri("d"), m, iri("b")),
	)
	for order, want := range map[string]string{
		`[{property: "ex:n"}, {property: "ex:m", direction: DESC}]`:                   "b a d c",
		`[{property: "ex:n", nulls: FIRST}, {by: IRI}]`:                               "c a b d",
		`[{property: "ex:n", direction: DESC}]`:                                       "a d b c",
		`[{property: "ex:n", direction: DESC, nulls: FIRST}]`:                         "c a d b",
		`[{property: "ex:none", nulls: FIRST}, {by: IRI, direction: DESC}]`:           "d c b a",
		`[{by: DEGREE, direction: DESC}]`:                                             "a b d c", // 5, 3, 3, 2
		`[{by: OUT_DEGREE, direction: DESC}, {by: IRI}]`:                              "a d b c", // 3, 3, 2, 2
		`[{by: IN_DEGREE, direction: DESC}, {by: IRI, direction: DESC}]`:              "a b d c", // 2, 1, 0, 0
		`[{path: "ex:m/ex:n", nulls: FIRST}, {by: IRI}]`:                              "a b c d", // none, none, 2, 2
		`[{path: "ex:m/ex:n", direction: DESC}, {by: IRI, direction: DESC}]`:          "d c b a", // 5, 5, none, none
		`[{path: "^ex:m"}, {by: IRI}]`:                                                "a b c d", // c, d, none, none
		`[{by: IN_DEGREE}, {by: OUT_DEGREE, direction: DESC}, {property: "ex:none"}]`: "d c b a",
	} {
		var data struct{ Entities connection }
		b.data(`{ entities(orderBy: `+order+`) { nodes { iri } } }`, "", &data)
		if got := strings.ReplaceAll(strings.Join(data.Entities.iris(), " "), ex, ""); got != want {
			t.Errorf("%s: got %s, want %s", order, got, want)
		}
	}
}

// The default graph has no name: nulls sets the place of its statements.
func TestOrdersOfStatements(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(
		add(iri("s"), iri("p"), kg.Integer(1)), in(iri("g1"), add(iri("s"), iri("p"), kg.Integer(2))), in(iri("g2"), add(iri("s"), iri("p"), kg.Integer(3))),
		in(iri("g2"), add(iri("s"), iri("p"), kg.Integer(4))), add(iri("s"), iri("p"), kg.Integer(5)),
	)
	for order, want := range map[string]string{
		`{by: GRAPH}`:                                               "1 5 2 3 4",
		`{by: GRAPH, direction: DESC}`:                              "3 4 2 1 5",
		`{by: GRAPH, nulls: LAST}`:                                  "2 3 4 1 5",
		`{by: GRAPH, direction: DESC, nulls: FIRST}`:                "1 5 3 4 2",
		`[{by: GRAPH, nulls: LAST}, {by: OBJECT, direction: DESC}]`: "2 4 3 5 1",
	} {
		var data struct {
			Statements struct {
				Nodes []struct{ Object struct{ Value int } }
			}
		}
		b.data(`{ statements(orderBy: `+order+`) { nodes { object { ... on Literal { value } } } } }`, "", &data)
		var got []string
		for _, n := range data.Statements.Nodes {
			got = append(got, fmt.Sprint(n.Object.Value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", order, got, want)
		}
	}
}
