package graph_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// newShort is a bench with a team, and with values of every kind that a condition compares.
func newShort(t *testing.T) *bench {
	b := newBench(t, graph.Options{})
	b.team()
	b.update(by("agent://sensor", 0.5, in(iri("g"), add(iri("s"), iri("size"), kg.Integer(3)))), add(iri("s"), kg.IRI("http://www.w3.org/2000/01/rdf-schema#label"), kg.String("Water")))
	return b
}

// shortForms are pairs of an operation in the short and in the long form.
var shortForms = []struct{ name, query, variables, long, longVariables string }{
	{"a text", `{ entities(where: {label: "Water"}) { nodes { iri } } }`, ``, `{ entities(where: {label: {eq: "Water"}}) { nodes { iri } } }`, ``},
	{"an IRI", `{ entities(where: {type: "ex:Person"}) { nodes { iri } } }`, ``, `{ entities(where: {type: {eq: "ex:Person"}}) { nodes { iri } } }`, ``},
	{"a list", `{ entities(where: {iri: ["ex:ada", "ex:bob"]}) { nodes { iri } } }`, ``, `{ entities(where: {iri: {in: ["ex:ada", "ex:bob"]}}) { nodes { iri } } }`, ``},
	{"an empty list", `{ entities(where: {iri: []}) { nodes { iri } } }`, ``, `{ entities(where: {iri: {in: []}}) { nodes { iri } } }`, ``},
	{"below and, or, not", `{ entities(where: {and: [{or: [{label: "Ada"}, {type: "ex:City"}]}, {not: {iri: "ex:rome"}}]}) { nodes { iri } } }`, ``,
		`{ entities(where: {and: [{or: [{label: {eq: "Ada"}}, {type: {eq: "ex:City"}}]}, {not: {iri: {eq: "ex:rome"}}}]}) { nodes { iri } } }`, ``},
	{"one where a list of filters is expected", `{ entities(where: {or: {type: "ex:City"}}) { nodes { iri } } }`, ``, `{ entities(where: {or: {type: {eq: "ex:City"}}}) { nodes { iri } } }`, ``},
	{"in a property", `{ entities(where: {property: {predicate: "ex:size", graph: "ex:g", certainty: 0.5, assertedBy: ["agent://sensor"]}}) { nodes { iri } } }`, ``,
		`{ entities(where: {property: {predicate: "ex:size", graph: {eq: "ex:g"}, certainty: {eq: 0.5}, assertedBy: {in: ["agent://sensor"]}}}) { nodes { iri } } }`, ``},
	{"in a path", `{ entities(where: {path: {path: "ex:knows", count: 1, where: {type: "ex:Person"}}}) { nodes { iri } } }`, ``,
		`{ entities(where: {path: {path: "ex:knows", count: {eq: 1}, where: {type: {eq: "ex:Person"}}}}) { nodes { iri } } }`, ``},
	{"a value", `{ statements(where: {object: 3}) { nodes { subject { iri } } } }`, ``, `{ statements(where: {object: {eq: 3}}) { nodes { subject { iri } } } }`, ``},
	{"values", `{ statements(where: {object: [3, "Water", true]}) { nodes { subject { iri } } } }`, ``, `{ statements(where: {object: {in: [3, "Water", true]}}) { nodes { subject { iri } } } }`, ``},
	{"a revision", `{ statements(where: {revision: 1}) { nodes { id } } }`, ``, `{ statements(where: {revision: {eq: 1}}) { nodes { id } } }`, ``},
	{"a list with null", `{ statements(where: {graph: [null, "ex:g"], predicate: "ex:size"}) { nodes { id } } }`, ``, `{ statements(where: {graph: {in: [null, "ex:g"]}, predicate: {eq: "ex:size"}}) { nodes { id } } }`, ``},
	{"null", `{ entities(where: {label: null, type: "ex:City"}) { nodes { iri } } }`, ``, `{ entities(where: {type: {eq: "ex:City"}}) { nodes { iri } } }`, ``},
	{"in an inner field", `{ entity(iri: "ex:ada") { out(where: {predicate: "ex:knows"}) { nodes { id } } } }`, ``, `{ entity(iri: "ex:ada") { out(where: {predicate: {eq: "ex:knows"}}) { nodes { id } } } }`, ``},
	{"in a fragment", `{ entity(iri: "ex:ada") { ...F } } fragment F on Entity { ... on Entity { out(where: {predicate: "ex:knows"}) { nodes { id } } } }`, ``,
		`{ entity(iri: "ex:ada") { out(where: {predicate: {eq: "ex:knows"}}) { nodes { id } } } }`, ``},
	{"in a pattern", `{ match(pattern: {triples: {s: "?s", p: "ex:knows", o: "?o"}, filter: {var: "o", value: {iri: "ex:bob"}}}) { nodes { values } } }`, ``,
		`{ match(pattern: {triples: {s: "?s", p: "ex:knows", o: "?o"}, filter: {var: "o", value: {iri: {eq: "ex:bob"}}}}) { nodes { values } } }`, ``},
	{"a variable", `query ($n: String!) { entities(where: {label: $n}) { nodes { iri } } }`, `{"n": "Water"}`, `{ entities(where: {label: {eq: "Water"}}) { nodes { iri } } }`, ``},
	{"a variable of a list", `query ($n: [IRI!]) { entities(where: {iri: $n}) { nodes { iri } } }`, `{"n": ["ex:ada"]}`, `{ entities(where: {iri: {in: ["ex:ada"]}}) { nodes { iri } } }`, ``},
	{"a variable in a list", `query ($n: IRI!) { entities(where: {iri: ["ex:bob", $n]}) { nodes { iri } } }`, `{"n": "ex:ada"}`, `{ entities(where: {iri: {in: ["ex:bob", "ex:ada"]}}) { nodes { iri } } }`, ``},
	{"a variable that is null", `query ($n: String) { entities(where: {label: $n, type: "ex:City"}) { nodes { iri } } }`, `{"n": null}`, `{ entities(where: {type: {eq: "ex:City"}}) { nodes { iri } } }`, ``},
	{"a variable that is absent", `query ($n: String) { entities(where: {label: $n, type: "ex:City"}) { nodes { iri } } }`, ``, `{ entities(where: {type: {eq: "ex:City"}}) { nodes { iri } } }`, ``},
	{"null where an empty condition differs", `query ($n: IRI) { statements(where: {predicate: "ex:size", object: {eq: 3, iri: $n}}) { nodes { id } } }`, `{"n": null}`, `{ statements(where: {predicate: {eq: "ex:size"}, object: {eq: 3}}) { nodes { id } } }`, ``},
	{"a variable with a default", `query ($n: String = "Water") { entities(where: {label: $n}) { nodes { iri } } }`, ``, `{ entities(where: {label: {eq: "Water"}}) { nodes { iri } } }`, ``},
	{"a default that is null", `query ($n: String = null) { entities(where: {label: $n, type: "ex:City"}) { nodes { iri } } }`, ``, `{ entities(where: {type: {eq: "ex:City"}}) { nodes { iri } } }`, ``},
	{"a number in a variable", `query ($n: Float!) { statements(where: {certainty: $n}) { nodes { id } } }`, `{"n": 0.5}`, `{ statements(where: {certainty: {eq: 0.5}}) { nodes { id } } }`, ``},
	{"JSON in a variable", `query ($n: JSON) { statements(where: {object: $n}) { nodes { id } } }`, `{"n": 3}`, `{ statements(where: {object: {eq: 3}}) { nodes { id } } }`, ``},
	{"a variable used in both ways", `query ($n: IRI!) { entity(iri: $n) { iri } entities(where: {iri: $n}) { nodes { iri } } statements(where: {subject: $n, graph: $n}) { totalCount } }`, `{"n": "ex:ada"}`,
		`{ entity(iri: "ex:ada") { iri } entities(where: {iri: {eq: "ex:ada"}}) { nodes { iri } } statements(where: {subject: {eq: "ex:ada"}, graph: {eq: "ex:ada"}}) { totalCount } }`, ``},
	{"a variable in a fragment", `query ($n: IRI!) { entity(iri: "ex:ada") { ...F again: out { totalCount } ...F } } fragment F on Entity { out(where: {predicate: $n}) { totalCount } }`, `{"n": "ex:knows"}`,
		`{ entity(iri: "ex:ada") { out(where: {predicate: {eq: "ex:knows"}}) { totalCount } again: out { totalCount } } }`, ``},
	{"the value of a filter", `query ($w: EntityFilter) { entities(where: $w) { nodes { iri } } }`, `{"w": {"label": "Water"}}`, `query ($w: EntityFilter) { entities(where: $w) { nodes { iri } } }`, `{"w": {"label": {"eq": "Water"}}}`},
	{"a list in one", `query ($w: EntityFilter) { entities(where: $w) { nodes { iri } } }`, `{"w": {"or": [{"iri": ["ex:ada", "ex:bob"]}, {"label": null, "type": "ex:City"}], "property": {"predicate": "ex:name", "exists": true}}}`,
		`query ($w: EntityFilter) { entities(where: $w) { nodes { iri } } }`, `{"w": {"or": [{"iri": {"in": ["ex:ada", "ex:bob"]}}, {"type": {"eq": "ex:City"}}], "property": {"predicate": "ex:name", "exists": true}}}`},
	{"the value of a condition", `query ($l: StringFilter) { entities(where: {label: $l}) { nodes { iri } } }`, `{"l": "Water"}`, `{ entities(where: {label: {eq: "Water"}}) { nodes { iri } } }`, ``},
	{"one in the long form", `query ($l: StringFilter) { entities(where: {label: $l}) { nodes { iri } } }`, `{"l": {"startsWith": "Wat"}}`, `{ entities(where: {label: {startsWith: "Wat"}}) { nodes { iri } } }`, ``},
	{"the default of a condition", `query ($l: StringFilter = "Water", $w: [EntityFilter!] = {iri: "ex:s"}) { entities(where: {label: $l, and: $w}) { nodes { iri } } }`, ``, `{ entities(where: {label: {eq: "Water"}, and: [{iri: {eq: "ex:s"}}]}) { nodes { iri } } }`, ``},
	{"a list of filters", `query ($w: [EntityFilter!]) { entities(where: {or: $w}) { nodes { iri } } }`, `{"w": [{"iri": "ex:ada"}, {"iri": {"eq": "ex:bob"}}]}`, `{ entities(where: {or: [{iri: {eq: "ex:ada"}}, {iri: {eq: "ex:bob"}}]}) { nodes { iri } } }`, ``},
	{"a group", `{ entities { groups(by: [{as: "t", path: "ex:lives"}], compute: [{as: "n", fn: COUNT}]) { count } } }`, ``, `{ entities { groups(by: [{as: "t", path: "ex:lives"}], compute: [{as: "n", fn: COUNT}]) { count } } }`, ``},
}

// The short form answers what the long one answers: data, hints and revision.
func TestShorthand(t *testing.T) {
	b := newShort(t)
	for _, x := range shortForms {
		t.Run(x.name, func(t *testing.T) {
			long := b.execute(x.long, x.longVariables)
			if len(long.Errors) > 0 {
				t.Fatalf("the long form: %v", long.Errors)
			}
			for range 2 { // the second time the document is cached
				short := b.execute(x.query, x.variables)
				if len(short.Errors) > 0 || string(short.Data) != string(long.Data) || fmt.Sprint(short.Hints) != fmt.Sprint(long.Hints) {
					t.Errorf("got %s, %v, %v\nwant %s, %v", short.Data, short.Errors, short.Hints, long.Data, long.Hints)
				}
			}
		})
	}
	if r := b.execute(`{ entities(where: {label: "Water"}) { nodes { iri } } }`, ""); string(r.Data) != `{"entities":{"nodes":[{"iri":"`+ex+`s"}]}}` {
		t.Errorf("got %s", r.Data)
	}
}

// Two operations that share a fragment each have their own variable in it.
func TestShorthandInSharedFragment(t *testing.T) {
	b := newShort(t)
	text := `query A ($p: IRI!) { entity(iri: "ex:ada") { ...F } } query B ($p: IRI!, $p2: Int) { entity(iri: "ex:bob") { ...F out(first: $p2) { totalCount } } } fragment F on Entity { label n: out(where: {predicate: $p}) { totalCount } }`
	for name, long := range map[string]string{
		"A": `{ entity(iri: "ex:ada") { label n: out(where: {predicate: {eq: "ex:knows"}}) { totalCount } } }`,
		"B": `{ entity(iri: "ex:bob") { label n: out(where: {predicate: {eq: "ex:knows"}}) { totalCount } out { totalCount } } }`,
	} {
		req := b.request(text, `{"p": "ex:knows"}`)
		req.OperationName = name
		r, want := b.engine.Execute(t.Context(), req), b.execute(long, "")
		if len(r.Errors) > 0 || string(r.Data) != string(want.Data) {
			t.Errorf("%s: got %s, %v, want %s", name, r.Data, r.Errors, want.Data)
		}
	}
}

// What is wrong in the long form is refused in the short one, at the place in the text.
func TestShorthandErrors(t *testing.T) {
	b := newShort(t)
	for _, x := range []struct{ query, variables, message, at string }{
		{`{ entities(where: {label: 5}) { totalCount } }`, ``, `String cannot represent a non string value: 5`, "[{1 27}]"},
		{`{ entities(where: {label: WATER}) { totalCount } }`, ``, `String cannot represent a non string value: WATER`, "[{1 27}]"},
		{"{ entities(\n  where: {label: [\"a\", 5]}) { totalCount } }", ``, `String cannot represent`, ""},
		{`query ($n: Int) { entities(where: {label: $n}) { totalCount } }`, ``, `Variable "$n" of type "Int" used in position expecting type "String".`, "[{1 43}]"},
		{`query ($n: String) { entities(where: {type: $n}) { totalCount } }`, ``, `Variable "$n" of type "String" used in position expecting type "IRI".`, "[{1 45}]"},
		{`query ($n: StringFilter) { entities(where: {type: $n}) { totalCount } }`, ``, `Variable "$n" of type "StringFilter" used in position expecting type "IRIFilter".`, "[{1 51}]"},
		{`{ entities(where: {label: $n}) { totalCount } }`, ``, `Variable "$n" is not defined.`, "[{1 27}]"},
		{`{ entities(where: "Water") { totalCount } }`, ``, `Expected value of type "EntityFilter", found "Water".`, "[{1 20}]"},
		{`{ entities(where: {property: "Water"}) { totalCount } }`, ``, `Expected value of type "[PropertyFilter!]", found "Water".`, "[{1 31}]"},
		{`{ entities(where: {label: [{eq: "a"}]}) { totalCount } }`, ``, `Expected value of type "StringFilter", found [{eq:"a"}].`, "[{1 27}]"},
		{`query ($n: String!) { entities(where: {label: $n}) { totalCount } }`, `{"n": null}`, `variable $n cannot be null`, ""},
		{`query ($n: String!) { entities(where: {label: $n}) { totalCount } }`, `{"n:StringFilter": {"eq": "x"}}`, `variable $n must be defined`, ""},
		{`query ($n: String!) { entities(where: {label: $n}) { totalCount } }`, `{"n": true}`, `variable $n cannot use`, ""},
		{`query ($w: EntityFilter) { entities(where: $w) { totalCount } }`, `{"w": {"label": true}}`, `variable $w.label.eq cannot use`, ""},
		{`query ($w: EntityFilter) { entities(where: $w) { totalCount } }`, `{"w": "Water"}`, `variable $w must be a EntityFilter`, ""},
		{`query ($l: StringFilter) { entities(where: {label: $l}) { totalCount } }`, `{"l": [{"eq": "a"}]}`, `variable $l must be a StringFilter`, ""},
	} {
		r := b.execute(x.query, x.variables)
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, x.message) || x.at != "" && fmt.Sprint(r.Errors[0].Locations) != x.at {
			t.Errorf("%s: got %+v, want %s", x.query, r.Errors, x.message)
		}
	}
}

// Nothing but the variables of the text is taken from a request, and those are not changed.
func TestShorthandVariablesAreTheCallers(t *testing.T) {
	b := newShort(t)
	req := b.request(`query ($n: String, $w: EntityFilter) { a: entities(where: {label: $n}) { nodes { iri } } b: entities(where: $w) { totalCount } }`,
		`{"n:StringFilter": {"eq": "nothing"}, "w": {"label": "Water", "or": [{"label": "Water"}]}}`)
	before := fmt.Sprint(req.Variables)
	r := b.engine.Execute(t.Context(), req)
	if len(r.Errors) > 0 || strings.Contains(string(r.Data), `"nodes":[]`) || fmt.Sprint(req.Variables) != before {
		t.Errorf("got %s, %v, %v", r.Data, r.Errors, req.Variables)
	}
}

// Values in the short form may be nested as deep as those of the long form.
func TestShorthandKeepsTheLimits(t *testing.T) {
	b := newShort(t)
	for _, depth := range []int{limit.MaxVariableDepth - 1, limit.MaxVariableDepth} {
		nested := any(map[string]any{"label": "Water"})
		for range depth - 2 { // w and the innermost are two
			nested = map[string]any{"not": nested}
		}
		long := maps.Clone(nested.(map[string]any))
		req := b.request(`query ($w: EntityFilter) { entities(where: $w, first: 1) { nodes { iri } } }`, "")
		req.Variables = map[string]any{"w": long}
		r := b.engine.Execute(t.Context(), req)
		tooDeep := len(r.Errors) > 0 && r.Errors[0].Extensions["limit"] == "variableDepth"
		if want := depth == limit.MaxVariableDepth; tooDeep != want {
			t.Errorf("%d levels: got %v, want refused %v", depth, r.Errors, want)
		}
	}
}

// Trusted and persisted documents are found by the hash of the text that was sent.
func TestShorthandInTrustedDocuments(t *testing.T) {
	text := `query ($n: String!) { entities(where: {label: $n}) { nodes { iri } } }`
	b := newBench(t, graph.Options{OnlyTrusted: true, Trusted: trusted(t, fmt.Sprintf(`{"short": %q}`, text))})
	if invalid := b.engine.InvalidDocuments(); len(invalid) > 0 {
		t.Fatalf("got %v", invalid)
	}
	for _, req := range []operation.Request{{DocumentID: "short"}, {DocumentID: "sha256:" + hashOf(text)}, {Query: text}, {Extensions: persistedQuery(hashOf(text))}} {
		req.Principal, req.Variables = reader, map[string]any{"n": "Water"}
		if r := b.engine.Execute(t.Context(), req); len(r.Errors) > 0 {
			t.Errorf("%+v: %v", req, r.Errors)
		}
	}
}

// Subscriptions take the short form.
func TestShorthandInSubscription(t *testing.T) {
	b := newShort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := b.request(`subscription ($o: JSON) { statementChanged(where: {predicate: "ex:heard", object: $o}) { ... on StatementChange { statement { subject { iri } } } } }`, `{"o": 7}`)
	s, err := b.engine.Subscribe(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b.update(add(iri("no"), iri("heard"), kg.Integer(6)), add(iri("yes"), iri("heard"), kg.Integer(7)))
	for event, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if text := string(event.Result.Data); text != "" {
			if !strings.Contains(text, ex+"yes") || strings.Contains(text, ex+"no") {
				t.Errorf("got %s", text)
			}
			break
		}
	}
}
