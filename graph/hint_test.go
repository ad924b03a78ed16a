package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/names"
	"koine/kg"
)

// Names that do not occur are reported with similar ones, and the answer is unchanged.
func TestHints(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	b.update(add(iri("said"), iri("says"), kg.String("ex:said")))
	for _, row := range []struct{ query, variables, want string }{
		{`{ entity(iri: "ex:ada") { value(predicate: "ex:nmae") } }`, ``, `entity.value predicate https://example.org/nmae → [https://example.org/name]`},
		{`{ a: entities(where: {type: {eq: "ex:Persn"}}) { nodes { iri } } }`, ``, `a class https://example.org/Persn → [https://example.org/Person]`},
		{`query ($w: EntityFilter) { entities(where: $w) { nodes { iri } } }`, `{"w": {"or": [{"property": {"predicate": "ex:agee", "eq": "ex:nope"}}, {"type": {"in": ["ex:City", "ex:Citty"]}}]}}`,
			`entities predicate https://example.org/agee → [https://example.org/age]; entities class https://example.org/Citty → [https://example.org/City]`},
		{`{ statements(where: {predicate: {eq: "ex:zzzzzz"}, graph: {eq: "ex:gg"}, object: {eq: "ex:thing"}}) { totalCount } }`, ``,
			`statements predicate https://example.org/zzzzzz → []; statements graph https://example.org/gg → [https://example.org/g]`},
		{`{ entities(orderBy: {property: "ex:siez"}, view: {graphs: ["ex:g", "ex:gggg"]}) { nodes { ...F } } } fragment F on Entity { out(where: {predicate: {eq: "ex:livs"}}) { nodes { id } } }`, ``,
			`entities predicate https://example.org/siez → []; entities graph https://example.org/gggg → []; entities.nodes.out predicate https://example.org/livs → [https://example.org/lives,https://example.org/likes]`},
		{`{ entities(where: {type: {eq: "ex:Person"}, property: {predicate: "ex:name", eq: "x"}}) { nodes { value(predicate: "ex:lives") } } }`, ``, ``},
		{`{ entity(iri: "ex:nobody") { iri } revision }`, ``, ``},
		{`{ a: match(pattern: {triples: [{s: "ex:ada", p: "ex:knows?", o: "?x"}, {s: "?x", p: "ex:knows{0,2}", o: "?y"}, {s: "?x", p: "!ex:age", o: "?y"}, {s: "?x", p: "(ex:knows)", o: "?y"}]}) { totalCount } }`, ``, ``},
		{`{ entity(iri: "ex:ada") { values(path: "ex:knows+/ex:nmae") follow(path: "^a|ex:livs", where: {path: {path: "ex:agee", value: {eq: 1}}}) { nodes { iri } } } }`, ``,
			`entity.values predicate https://example.org/nmae → [https://example.org/name]; entity.follow predicate https://example.org/livs → [https://example.org/lives,https://example.org/likes]; entity.follow predicate https://example.org/agee → [https://example.org/age]`},
		{`{ entities(where: {path: {path: "!(ex:agee)", count: {gte: 0}}}, orderBy: {path: "ex:knows/ex:nmae"}) { nodes { iri } groups(by: [{as: "k", path: "ex:livez"}]) { count } } }`, ``,
			`entities predicate https://example.org/agee → [https://example.org/age]; entities predicate https://example.org/nmae → [https://example.org/name]; entities.groups predicate https://example.org/livez → [https://example.org/lives,https://example.org/likes]`},
		{`{ match(pattern: {triples: [{s: "exx:ada", p: "ex:nmae/ex:name", o: "?o"}, {s: "?s", p: "?p", o: "ez:rome"}]}) { totalCount } }`, ``,
			`match IRI exx:ada: exx is not a registered prefix; did you mean ex? → [ex:ada]; match predicate https://example.org/nmae → [https://example.org/name]; match IRI ez:rome: ez is not a registered prefix; did you mean ex? → [ex:rome]`},
		{`query ($i: IRI!) { entity(iri: $i) { iri } shortestPaths(from: "scema:ada", to: "ex:rome") { length } entities(where: {type: {eq: "exx:Person"}, iri: {in: ["ex:nope", "urn:nope", "http:nope", "xyzzyx:nope"]}}) { nodes { iri } } }`, `{"i": "exx:ada"}`,
			`entity IRI exx:ada: exx is not a registered prefix; did you mean ex? → [ex:ada]; shortestPaths IRI scema:ada: scema is not a registered prefix; did you mean schema? → [schema:ada]; entities class exx:Person: exx is not a registered prefix; did you mean ex? → [ex:Person]; entities IRI xyzzyx:nope: xyzzyx is not a registered prefix → []`},
		{`{ entities(where: {property: {predicate: "ex:lives", in: ["ex:rome", "ex:nowhere"]}, path: {path: "ex:knows", value: {eq: "https://example.org/bob"}}}) { nodes { iri } } statements(where: {object: {eq: "ex:Person"}}) { nodes { id } } }`, ``,
			`entities "ex:rome" is compared as a text; for the entity use iri: {eq: …} → []; entities "https://example.org/bob" is compared as a text; for the entity use iri: {eq: …} → []; statements "ex:Person" is compared as a text; for the entity use iri: {eq: …} → []`},
		{`{ match(pattern: {triples: {s: "?s", p: "ex:lives", value: "ex:rome"}, filter: {var: "s", value: {eq: "ex:ada"}}}) { totalCount } }`, ``,
			`match "ex:rome" is compared as a text; for the entity use o → []; match "ex:ada" is compared as a text; for the entity use iri: {eq: …} → []`},
		{`{ a: shortestPaths(from: "ex:ada", to: "ex:rome", maxDepth: 1) { length } }`, ``, `a no path has at most 1 statements (maxDepth), but a longer one may exist → []`},
		{`{ shortestPaths(from: "ex:ada", to: "ex:Person") { length } b: shortestPaths(from: "ex:ada", to: "ex:rome", maxDepth: 2) { length } }`, ``, ``},
		{`{ entities(where: {property: {predicate: "ex:name", eq: "ex:said"}}) { nodes { iri } } }`, ``, ``},
	} {
		r := b.execute(row.query, row.variables)
		if len(r.Errors) > 0 {
			t.Errorf("%s: %v", row.query, r.Errors)
		}
		var got []string
		for _, h := range r.Hints {
			near, err := json.Marshal(h.Nearest)
			if err != nil {
				t.Fatal(err)
			}
			list := strings.NewReplacer(`"`, "", "null", "[]").Replace(string(near))
			message := strings.NewReplacer("the graphs that you may read have no ", "", "there is no visible ", "").Replace(h.Message)
			got = append(got, h.Path.String()+" "+message+" → "+list)
		}
		if got := strings.Join(got, "; "); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.query, got, row.want)
		}
	}
}

// A name with a URI scheme that the operator allowed has no prefix that is not
// registered; when it is allowed no more, it has one again.
func TestHintsKnowAllowedSchemes(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	operator := kg.Meta{Principal: kg.Principal{ID: "agent://operator", Roles: []string{kg.RoleAdmin}}}
	hinted := func() (hints []string) {
		for _, query := range []string{`{ entity(iri: "exx:ada") { iri } }`, `{ statements(where: {predicate: {eq: "exx:zzzzzz"}}) { totalCount } }`} {
			for _, h := range b.execute(query, "").Hints {
				hints = append(hints, h.Message)
			}
		}
		return hints
	}
	const told = "exx is not a registered prefix"
	if got := strings.Join(hinted(), "; "); strings.Count(got, told) != 2 {
		t.Fatalf("an unknown prefix: got %q", got)
	}
	if _, err := names.ChangeSchemes(t.Context(), b.store, operator, []string{"exx"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(hinted(), "; "); strings.Contains(got, told) {
		t.Errorf("a scheme that is allowed: got %q", got)
	}
	if _, err := names.ChangeSchemes(t.Context(), b.store, operator, nil, []string{"exx"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(hinted(), "; "); strings.Count(got, told) != 2 {
		t.Errorf("one that is allowed no more: got %q", got)
	}
}

// onlyDefault lets the reader read the default graph only.
type onlyDefault struct{}

func (onlyDefault) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID != reader.ID || graph == kg.DefaultGraph
}

// A hint reveals nothing hidden from the caller: neither its existence, nor as a similar
// name.
func TestHintsKeepSecrets(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = onlyDefault{} })
	b.update(in(iri("hidden"), add(iri("s"), iri("secret"), kg.Integer(1))), add(iri("s"), iri("open"), kg.Integer(1)))
	for _, text := range []string{"ex:secret", "ex:secrett", "ex:absent"} {
		r := b.execute(`{ entity(iri: "ex:s") { value(predicate: "`+text+`") } }`, "")
		if len(r.Hints) != 1 || len(r.Hints[0].Nearest) > 0 {
			t.Errorf("%s: got %v", text, r.Hints)
		}
	}
	if r := b.execute(`{ entity(iri: "ex:s") { value(predicate: "ex:opn") } }`, ""); len(r.Hints) != 1 || len(r.Hints[0].Nearest) != 1 {
		t.Errorf("got %v", r.Hints)
	}
	b.update(in(iri("hidden"), add(kg.IRI("exx:there"), iri("p"), kg.String("ex:s"))), in(iri("hidden"), add(iri("held"), iri("p"), kg.Integer(1))))
	for text, hints := range map[string]int{"ex:held": 0, "ex:s": 1} {
		if r := b.execute(`{ statements(where: {object: {eq: "`+text+`"}}) { nodes { id } } }`, ""); len(r.Hints) != hints {
			t.Errorf("%s: got %v", text, r.Hints)
		}
	}
	if r := b.execute(`{ entity(iri: "exx:there") { iri } }`, ""); len(r.Hints) != 1 {
		t.Errorf("got %v", r.Hints)
	}
	if r := b.execute(`{ statements(where: {graph: {eq: "ex:hiddn"}}) { nodes { id } } }`, ""); len(r.Hints) != 1 || len(r.Hints[0].Nearest) > 0 {
		t.Errorf("got %v", r.Hints)
	}
}

// A subscription has its hints once, in its first result.
func TestHintsOfSubscription(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	s, err := b.engine.Subscribe(t.Context(), b.request(`subscription { statementChanged(where: {predicate: {eq: "ex:nmae"}}) { __typename } }`, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stream := s.(*graph.Stream)
	if r := stream.UpToDate().Result; len(r.Hints) != 1 || len(r.Hints[0].Nearest) != 1 {
		t.Errorf("got %v", r.Hints)
	}
	if r := stream.UpToDate().Result; len(r.Hints) != 0 {
		t.Errorf("told again: %v", r.Hints)
	}
}

// A name without a prefix gets a hint to the one with a prefix that exists, at any place; a
// hidden one gets none.
func TestBareNamesAreToldTheirPrefix(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = onlyDefault{} })
	b.team()
	if _, err := b.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error { return kg.RegisterPrefixes(tx, map[string]string{"ex": ex}) }); err != nil {
		t.Fatal(err)
	}
	b.update(in(iri("hidden"), add(iri("s"), iri("secret"), kg.Integer(1))), add(iri("s"), iri("lives"), kg.Integer(1)))
	for _, query := range []string{
		`{ entity(iri: "lives") { iri } }`,
		`{ entities(where: {type: {eq: "lives"}}) { totalCount } }`,
		`{ entities(where: {property: {predicate: "lives"}}) { totalCount } }`,
		`{ entities(where: {path: {path: "lives/ex:name"}}) { totalCount } }`,
		`{ entities(orderBy: {path: "^lives"}) { totalCount } }`,
		`{ entities { groups(by: [{as: "k", path: "lives"}]) { count } } }`,
		`{ entity(iri: "ex:ada") { values(path: "ex:knows+/lives") } }`,
		`{ entity(iri: "ex:ada") { value(path: "lives") } }`,
		`{ entity(iri: "ex:ada") { follow(path: "lives|^a") { totalCount } } }`,
		`{ match(pattern: {triples: [{s: "?s", p: "lives", o: "?o"}]}) { totalCount } }`,
		`{ match(pattern: {triples: [{s: "?s", p: "ex:knows", o: "lives"}]}) { totalCount } }`,
	} {
		r := b.execute(query, "")
		if len(r.Errors) != 1 || strings.Count(r.Errors[0].Message, "did you mean ex:lives?") != 1 {
			t.Errorf("%s: %v", query, r.Errors)
		}
	}
	if r := b.execute(`{ entity(iri: "ex:ada") { values(path: "secret") } }`, ""); len(r.Errors) != 1 || strings.Contains(r.Errors[0].Message, "mean") {
		t.Errorf("got %v", r.Errors)
	}
}

// A hint about a patch has the path of its field, whose name is the alias.
func TestHintsOfPatches(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("name"), kg.Integer(1)))
	const patch = `applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:%s"}, object: {value: 1}}}]}) { success }`
	result := b.execute(fmt.Sprintf("mutation { one: "+patch+" two: "+patch+" }", "nam", "nme"), "")
	var paths []string
	for _, h := range result.Hints {
		paths = append(paths, h.Path.String())
	}
	if want := []string{"one.input.patches[0].statement.predicate", "two.input.patches[0].statement.predicate"}; len(result.Errors) > 0 || !slices.Equal(paths, want) {
		t.Errorf("got hints at %q and %v, want %q", paths, result.Errors, want)
	}
}
