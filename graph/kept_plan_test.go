package graph_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/kg"
)

// constant selects fields of every kind whose plans can be kept.
const constant = `query ($iri: IRI!) { entity(iri: $iri) { __typename id iri types label(lang: "en") degree p: value(predicate: "ex:p") q: values(predicate: "ex:q")
	out(first: 20) { totalCount edges { node { id } } pageInfo { hasNextPage } nodes { id predicate graph certainty assertedBy revision recordedAt pending subject { iri } predicateEntity { label } object { ... on Entity { iri label } ... on Literal { value lexical } } } }
	only: out(where: {predicate: "ex:p"}, last: null) { nodes { ...what } } in { nodes { subject { iri label } } }
	follow(path: "ex:q/^ex:q", first: 5) { totalCount nodes { iri label } } } }
	fragment what on Statement { object { ... on Entity { out(where: {predicate: {eq: "ex:q"}}) { nodes { predicate } } } ... on Literal { language } } }`

// A plan that is kept with its document answers as a new one does, whoever asks in whatever view,
// and whatever has been written or registered since.
func TestKeptPlans(t *testing.T) {
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	policies := policy.New(policy.Options{})
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access, o.OnSystemChange = policies, policies.Follow })
	if err := policies.Load(context.Background(), b.store); err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: prefixes, Graphs: policy.NewGraphs(b.store, policies)}, graph.Options{CachedDocuments: 100_000})
	b.wantAs(doraKey, `mutation { createGraph(input: {iri: "agent://dora/notes", readers: ["role:guest"], justification: "mine"}) { revision } }`, `{"createGraph":{"revision":1}}`)
	ask := func(who kg.Principal, query, variables string, change func(*operation.Request)) string {
		req := operation.Request{Query: query, Variables: decodeVariables(t, variables), Principal: who}
		if change != nil {
			change(&req)
		}
		r := b.engine.Execute(context.Background(), req)
		answer := fmt.Sprint(sealed.ReplaceAllString(string(r.Data), `"…"`), r.Errors, r.StatementsRead)
		for _, c := range r.Cuts {
			answer += fmt.Sprint(" ", c.Path, c.Reason)
			if c.Path.String() == "entity.out" && !strings.Contains(query, "contains") {
				req.Query, req.Budget = `query ($iri: IRI!, $after: Cursor) { entity(iri: $iri) { out(after: $after) { nodes { predicate } } } }`, operation.Budget{}
				req.Variables = map[string]any{"iri": req.Variables["iri"], "after": c.Cursor}
				rest := b.engine.Execute(context.Background(), req)
				answer += fmt.Sprint(" and then ", string(rest.Data), rest.Errors)
			}
		}
		return answer
	}
	documents := map[string]bool{ // whether their plans are kept
		constant: true,
		`query ($iri: IRI!) { entity(iri: $iri) { out { nodes { predicate object { ... on Entity { iri } } } } } }`:                             true,
		`query ($iri: IRI!, $all: Boolean!) { entity(iri: $iri) { iri types @include(if: $all) out @skip(if: $all) { nodes { predicate } } } }`: false,
		`query ($iri: IRI!, $of: IRI = "ex:p") { entity(iri: $iri) { value(predicate: $of) } }`:                                                 false,
		`query ($iri: IRI!) { entity(iri: $iri) { out(first: 1) { nodes { predicate } pageInfo { endCursor } } } }`:                             false,
		`query ($iri: IRI!) { entity(iri: $iri) { out(where: {predicate: {contains: "p"}}) { nodes { predicate } } } }`:                         false,
		`query ($iri: IRI!) { entity(iri: $iri) { iri } entity(iri: $iri) { types } }`:                                                          false,
	}
	number := 0
	compare := func(what string) {
		t.Helper()
		for query := range documents {
			for _, who := range []kg.Principal{doraKey, eveKey, reader, adminKey} {
				for _, variables := range []string{`{"iri": "ex:s", "all": true}`, `{"iri": "ex:s", "all": false, "of": "ex:q"}`, `{"iri": "ex:o", "all": true}`, `{"iri": "ex:none", "all": true}`} {
					for _, change := range []func(*operation.Request){nil,
						func(r *operation.Request) { r.View.MinCertainty = 0.5 },
						func(r *operation.Request) { r.View.Graphs = []kg.Term{kg.DefaultGraph} },
						func(r *operation.Request) { r.View.At = 2 },
						func(r *operation.Request) { r.Budget.MaxStatements = 2 },
					} {
						number++
						want := ask(who, fmt.Sprintf("%s # %d", query, number), variables, change)
						if got := ask(who, query, variables, change); got != want {
							t.Errorf("%s: %s with %s\n%s\ngot  %s\nwant %s", what, who.ID, variables, query, got, want)
						}
					}
				}
			}
		}
	}
	compare("nothing is there")
	b.update(add(iri("s"), iri("p"), kg.String("open")), by("agent://a", 0.3, add(iri("s"), iri("q"), iri("o"))))
	b.wantAs(doraKey, `mutation { applyPatches(input: {`+notes+`}) { statementsAffected } }`, `{"applyPatches":{"statementsAffected":1}}`)
	compare("a private statement")
	b.update(add(iri("s"), kg.IRI(kg.RDFType), iri("C")), add(iri("o"), kg.IRI(kg.RDFSLabel), kg.LangString("water", "en")), add(iri("s"), kg.IRI("https://schema.org/name"), kg.String("S")), add(iri("o"), iri("p"), iri("s")))
	compare("properties that were not there")
	prefixes.Set(map[string]string{"ex": "https://other.example/"})
	b.update(add(kg.IRI("https://other.example/s"), kg.IRI("https://other.example/p"), kg.String("other")))
	compare("a prefix of another namespace")
	for query, want := range documents {
		kept := reflect.ValueOf(b.engine.KeptWith(query)["entity"])
		if got := kept.IsValid() && !kept.Elem().FieldByName("entity").IsNil(); got != want {
			t.Errorf("a plan is kept: %t, not %t, for %s", got, want, query)
		} else if got {
			holdsNothingOf(t, kept)
		}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			who := []kg.Principal{doraKey, eveKey, reader, adminKey}[i%4]
			want := ask(who, fmt.Sprintf("%s # of %d", constant, i), `{"iri": "ex:s"}`, nil)
			for range 50 {
				if got := ask(who, constant, `{"iri": "ex:s"}`, nil); got != want {
					t.Errorf("%s beside others got %s, want %s", who.ID, got, want)
				}
			}
		})
	}
	all.Wait()
}

// holdsNothingOf checks that a value holds nothing of a request: no context, caller, view, run or
// snapshot.
func holdsNothingOf(t *testing.T, v reflect.Value) {
	t.Helper()
	seen := map[reflect.Value]bool{}
	ctx := reflect.TypeFor[context.Context]()
	n := 0
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		if !v.IsValid() || v.IsZero() || len(path) > 300 {
			return
		}
		n++
		switch of := v.Type(); {
		case of.Implements(ctx), of == reflect.TypeFor[kg.View](), of == reflect.TypeFor[kg.Principal](), of == reflect.TypeFor[kg.Snapshot](),
			of == reflect.TypeFor[operation.Request](), of.Name() == "Run", of.Name() == "Operation", of.Name() == "OperationContext", of.Name() == "CursorBound":
			t.Errorf("a kept plan holds %s at %s", of, path)
			return
		case of == reflect.TypeFor[kg.Prefixes]():
			return
		}
		switch v.Kind() {
		case reflect.Func:
			t.Errorf("a kept plan holds a function, which may hold anything, at %s", path)
		case reflect.Pointer:
			if !seen[v] {
				seen[v] = true
				walk(v.Elem(), path)
			}
		case reflect.Interface:
			walk(v.Elem(), path)
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), path+"[]")
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(key, path+"[key]")
				walk(v.MapIndex(key), path+"[value]")
			}
		}
	}
	walk(v, "")
	if n < 50 {
		t.Errorf("only %d values were looked at", n)
	}
}
