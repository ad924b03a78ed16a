package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/query"
	"koine/kg"
)

// The meaning of filters in an open world, as the schema describes it:
//
//   - a condition holds if some value meets it, and all its operators are about
//     that one value;
//   - `ne` means that some value differs, `not` that no value is equal;
//   - a missing value is not false, not empty and not different;
//   - values compare by meaning, not by notation.
func TestOpenWorld(t *testing.T) {
	b := newBench(t, graph.Options{})
	set := func(name string, objects ...kg.Term) {
		patches := []kg.Patch{add(iri(name), iri("is"), kg.Boolean(true))}
		for _, o := range objects {
			patches = append(patches, add(iri(name), iri("p"), o))
		}
		b.update(patches...)
	}
	set("none")
	set("one", kg.Integer(1))
	set("both", kg.Integer(1), kg.Integer(9))
	set("decimal", kg.Typed("1.0", kg.XSDDecimal))
	set("double", kg.Typed("1e0", kg.XSDDouble))
	set("text", kg.String("1"))
	set("true", kg.Boolean(true))
	set("false", kg.Boolean(false))
	set("numeral", kg.Typed("1", kg.XSDBoolean))
	set("noonZ", kg.Typed("2024-01-01T00:00:00Z", kg.XSDDateTime))
	set("noonCET", kg.Typed("2024-01-01T01:00:00+01:00", kg.XSDDateTime))
	set("big", kg.Typed("9007199254740993", kg.XSDInteger))
	set("bigger", kg.Typed("9007199254740994.0", kg.XSDDecimal))
	set("entity", iri("one"))
	numbers := []string{"one", "both", "decimal", "double"}
	all := []string{"none", "one", "both", "decimal", "double", "text", "true", "false", "numeral", "noonZ", "noonCET", "big", "bigger", "entity"}
	but := func(names ...string) (rest []string) {
		for _, n := range all {
			if !slices.Contains(names, n) {
				rest = append(rest, n)
			}
		}
		return rest
	}
	p := func(operators string) string { return `property: {predicate: "ex:p", ` + operators + `}` }
	for _, tt := range []struct {
		where string
		want  []string
	}{
		{p(`eq: 1`), numbers},
		{p(`eq: 1.0`), numbers},
		{p(`eq: 1e0`), numbers},
		{p(`in: [1.00, 7]`), numbers},
		{p(`eq: "1"`), []string{"text"}},
		{p(`ne: 1`), but("none", "one", "decimal", "double")}, // 9 is another one
		{`not: {` + p(`eq: 1`) + `}`, but(numbers...)},        // and so is nothing at all
		{p(`nin: [1]`), but("none", "one", "decimal", "double")},
		{p(`ne: 1, lt: 5`), nil}, // of one and the same value
		{p(`gte: 1, lt: 9`), numbers},
		{p(`gt: 5, lt: 10`), []string{"both"}},
		{p(`eq: false`), []string{"false"}}, // not those without a value
		{p(`eq: true`), []string{"true", "numeral"}},
		{p(`ne: true`), but("none", "true", "numeral")},
		{p(`lt: true`), []string{"false"}},
		{p(`exists: false`), []string{"none"}},
		{p(`exists: true`), but("none")},
		{p(`exists: false, eq: 1`), nil},
		{`not: {` + p(`exists: true`) + `}`, []string{"none"}},
		{p(`eq: "2024-01-01T00:00:00Z"`), []string{"noonZ", "noonCET"}},
		{p(`lt: "2024-01-01T00:00:01Z"`), []string{"noonZ", "noonCET", "text"}}, // a text by its characters
		{p(`eq: 9007199254740993`), []string{"big"}},
		{p(`gt: 9007199254740993`), []string{"bigger"}},
		{p(`in: [9007199254740992]`), nil},
		{p(`contains: ""`), []string{"text"}},
		{p(`regex: "."`), []string{"text"}},
		{p(`iri: {exists: true}`), []string{"entity"}},
		{p(`iri: {exists: false}`), but("none", "entity")},
		{p(`datatype: {exists: false}`), []string{"entity"}},
		{p(`language: {exists: false}`), []string{"text"}},
		{`type: {exists: false}`, all},
		{`type: {exists: true}`, nil},
		{`type: {exists: false, contains: "x"}`, nil}, // an absent value contains nothing
		{`not: {type: {ne: "ex:T"}}`, all},
	} {
		var data struct{ Entities connection }
		b.data(`{ entities(first: 100, where: {`+tt.where+`}) { totalCount nodes { iri } } }`, "", &data)
		got := data.Entities.iris()
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], ex)
		}
		sameSets(t, tt.where, got, slices.Clone(tt.want))
	}
}

// Conditions on the statement with a value are about one statement: that of the value which
// meets the operators.
func TestConditionsOnOneStatement(t *testing.T) {
	b := newBench(t, graph.Options{})
	p := iri("p")
	b.update(
		by("agent://a", 0.9, add(iri("x"), p, kg.Integer(1))), by("agent://b", 0.2, in(iri("g"), add(iri("x"), p, kg.Integer(2)))),
		by("agent://b", 0.9, add(iri("y"), p, kg.Integer(2))),
	)
	for where, want := range map[string]string{
		`eq: 2, certainty: {gte: 0.5}`:                                   "y",
		`eq: 2, assertedBy: {eq: "b"}`:                                   "x y", // a bare id is agent://b
		`eq: 1, assertedBy: {eq: "b"}`:                                   "",
		`graph: {eq: "ex:g"}`:                                            "x",
		`eq: 1, graph: {eq: "ex:g"}`:                                     "",
		`graph: {default: true}`:                                         "x y",
		`graph: {startsWith: "https:"}, certainty: {lt: 0.5}`:            "x",
		`graph: {startsWith: "https:"}, certainty: {gt: 0.5}`:            "",
		`recordedAt: {gt: "2100-01-01T00:00:00Z"}`:                       "",
		`ageSeconds: {lte: 100}`:                                         "x y",
		`ageSeconds: {gt: 100}`:                                          "",
		`revision: {in: [1]}, assertedBy: {in: ["agent://a"]}`:           "x",
		`exists: false, graph: {eq: "ex:g"}`:                             "",
		`exists: true, certainty: {exists: true}, assertedBy: {ne: "b"}`: "x",
	} {
		var data struct{ Entities connection }
		b.data(`{ entities(where: {property: {predicate: "ex:p", `+where+`}}) { nodes { iri } } }`, "", &data)
		if got := strings.ReplaceAll(strings.Join(data.Entities.iris(), " "), ex, ""); got != want {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
}

// The age of a statement is that of its newest assertion in the view; lte agrees with
// maxAgeSeconds of a view, also between two seconds.
func TestAgesAreThoseOfViews(t *testing.T) {
	c := &clock{}
	b := newBench(t, graph.Options{}, c.configure)
	for i := range 5 {
		b.update(add(iri("x"), iri("p"), kg.Integer(int64(i))))
	}
	c.stop()
	for n := range 12 {
		var data struct{ Filter, View connection }
		b.data(fmt.Sprintf(`{ filter: statements(where: {ageSeconds: {lte: %d}}) { totalCount } view: statements(view: {maxAgeSeconds: %d}) { totalCount } }`, n+1, n+1), "", &data)
		if data.Filter.TotalCount != data.View.TotalCount {
			t.Errorf("%d seconds: the filter shows %d statements, the view %d", n+1, data.Filter.TotalCount, data.View.TotalCount)
		}
	}
}

// A regular expression is bounded, and an error has its fault.
func TestRegularExpressions(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("x"), kg.IRI(kg.RDFSLabel), kg.String(strings.Repeat("a", 1000))))
	long := strings.Repeat("(?:)", query.MaxRegexBytes/4)
	deep := fmt.Sprintf("(?:a{%d})", query.MaxRegexInstructions-2) // beside the start and the end
	for name, tt := range map[string]struct{ regex, code, says string }{
		"at the bound of length":   {long, "", ""},
		"past the bound of length": {long + "a", "LIMIT_EXCEEDED", "1001 bytes"},
		"at the bound of steps":    {deep, "", ""},
		"past the bound of steps":  {deep + "a", "LIMIT_EXCEEDED", "501 instructions"},
		"what it cannot do":        {`(?=a)`, "INVALID", "invalid or unsupported Perl syntax at offset 0, \"(?=\""},
		"an open class":            {`b[a-`, "INVALID", "missing closing ] at offset 1, \"[a-\""},
		"an open parenthesis":      {`(a)[(](b(c)`, "INVALID", "missing closing ) at offset 6, \"(\""},
		"a closed parenthesis":     {`(a)b)c)`, "INVALID", "unexpected ) at offset 4, \")\""},
		"repeated too often":       {`xa{1001}`, "INVALID", "invalid repeat count at offset 2, \"{1001}\""},
	} {
		for _, where := range []string{`label: {regex: $r}`, `iri: {regex: $r}`, `property: {predicate: "rdfs:label", regex: $r}`, `property: {predicate: "rdfs:label", graph: {regex: $r}}`} {
			query := `query ($r: String) { entities(where: {` + where + `}) { totalCount } }`
			variables, _ := json.Marshal(map[string]string{"r": tt.regex})
			result := b.execute(query, string(variables))
			var code any = ""
			var message string
			if len(result.Errors) > 0 {
				code, message = result.Errors[0].Extensions["code"], result.Errors[0].Message
			}
			if code != tt.code || !strings.Contains(message, tt.says) {
				t.Errorf("%s, %s: got %v %q, want %v and %q", name, where, code, message, tt.code, tt.says)
			}
		}
	}
}

// An age changes with time alone: it can neither be followed nor used in changes.
func TestAgesAreNotFollowed(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, where := range []string{`{ageSeconds: {lt: 60}}`, `{predicate: {eq: "ex:p"}, not: {or: [{ageSeconds: {gt: 60}}]}}`} {
		_, err := b.engine.Subscribe(t.Context(), b.request(`subscription { statementChanged(where: `+where+`) { __typename } }`, ""))
		if err == nil || !strings.Contains(err.Error(), "age") {
			t.Errorf("%s: got %v, want that an age cannot be followed", where, err)
		}
		for _, field := range []string{`changes(where: ` + where + `) { __typename }`, `diff(from: "0", where: ` + where + `) { __typename }`, `entity(iri: "ex:x") { history(where: ` + where + `) { __typename } }`} {
			if r := b.execute(`{ `+field+` }`, ""); len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "age") {
				t.Errorf("%s: got %v, want that an age cannot be asked for", field, r.Errors)
			}
		}
	}
}
