package graph_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/kg"
)

var (
	adminKey = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}
	doraKey  = kg.Principal{ID: "agent://dora", Method: "key"}
	eveKey   = kg.Principal{ID: "agent://eve", Roles: []string{"guest"}, Method: "key"}
)

// newPoliced is a bench whose store has policies.
func newPoliced(t testing.TB, o policy.Options, configure ...func(*kg.Options)) *bench {
	t.Helper()
	policies := policy.New(o)
	b := newBench(t, graph.Options{}, append(configure, func(o *kg.Options) { o.Access, o.OnSystemChange = policies, policies.Follow })...)
	if err := policies.Load(context.Background(), b.store); err != nil {
		t.Fatal(err)
	}
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: prefixes, Graphs: policy.NewGraphs(b.store, policies)}, graph.Options{})
	return b
}

// as is the answer to an operation, in short: its data, or the code, field and
// message of its error.
func (b *bench) as(who kg.Principal, query string) string {
	b.t.Helper()
	r := b.engine.Execute(context.Background(), operation.Request{Query: query, Principal: who})
	if len(r.Errors) > 0 {
		e := r.Errors[0]
		return fmt.Sprint(e.Extensions["code"], " ", e.Extensions["field"], " ", e.Message)
	}
	return string(r.Data)
}

func (b *bench) wantAs(who kg.Principal, query, want string) {
	b.t.Helper()
	if got := b.as(who, query); got != want {
		b.t.Errorf("%s: %s\ngot  %s\nwant %s", who.ID, query, got, want)
	}
}

const notes = `patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "secret"}, graph: "agent://dora/notes"}}]`

// A graph from its making to its end, as its owner, a reader, a stranger and an
// administrator see it.
func TestGraphs(t *testing.T) {
	b := newPoliced(t, policy.Options{})
	const all = `{ graphs { nodes { iri statementCount rights policy { visibility owners writers readers revision } } } }`
	const one = `{ graph(iri: "agent://dora/notes") { statementCount rights } }`
	const bare = `{"iri":null,"statementCount":0,"rights":["DISCOVER","READ","WRITE"],"policy":null}`
	b.wantAs(eveKey, all, `{"graphs":{"nodes":[`+bare+`]}}`)
	b.wantAs(doraKey, one, `{"graph":null}`)
	b.wantAs(doraKey, `mutation { createGraph(input: {iri: "agent://dora/notes", readers: ["role:guest"], justification: "mine"}) { graph { iri statementCount rights policy { visibility owners readers writers revision } } revision } }`,
		`{"createGraph":{"graph":{"iri":"agent://dora/notes","statementCount":0,"rights":["DISCOVER","READ","WRITE","MANAGE"],"policy":{"visibility":"PRIVATE","owners":["agent://dora"],"readers":["role:guest"],"writers":[],"revision":1}},"revision":1}}`)
	b.wantAs(doraKey, `mutation { applyPatches(input: {`+notes+`}) { statementsAffected } }`, `{"applyPatches":{"statementsAffected":1}}`)
	b.wantAs(eveKey, one, `{"graph":{"statementCount":1,"rights":["DISCOVER","READ"]}}`)
	b.wantAs(eveKey, all, `{"graphs":{"nodes":[`+bare+`,{"iri":"agent://dora/notes","statementCount":1,"rights":["DISCOVER","READ"],"policy":null}]}}`)
	b.wantAs(eveKey, `{ graphs(last: 1) { nodes { iri } totalCount pageInfo { hasNextPage hasPreviousPage } } }`, `{"graphs":{"nodes":[{"iri":"agent://dora/notes"}],"totalCount":2,"pageInfo":{"hasNextPage":false,"hasPreviousPage":true}}}`)
	b.wantAs(eveKey, `{ graphs(first: 1) { nodes { iri } } }`, `{"graphs":{"nodes":[{"iri":null}]}}`)
	b.wantAs(eveKey, `mutation { applyPatches(input: {`+notes+`}) { statementsAffected } }`, `PERMISSION_DENIED input.patches[0].statement.graph you may read the graph <agent://dora/notes>, not write it`)
	b.wantAs(eveKey, `mutation { setGraphPolicy(input: {iri: "agent://dora/notes", visibility: PUBLIC}) { revision } }`, `PERMISSION_DENIED input.iri only an owner of the graph <agent://dora/notes> can do this`)
	b.wantAs(doraKey, `mutation { setGraphPolicy(input: {iri: "agent://dora/notes", readers: []}) { graph { policy { readers revision } } } }`, `{"setGraphPolicy":{"graph":{"policy":{"readers":[],"revision":3}}}}`)
	b.wantAs(doraKey, `mutation { setGraphPolicy(input: {iri: "agent://dora/notes", readers: []}) { revision commitId } }`, `{"setGraphPolicy":{"revision":3,"commitId":null}}`)
	b.wantAs(doraKey, `mutation { setGraphPolicy(input: {iri: "agent://dora/notes", visibility: PUBLIC, expectedRevision: 2}) { revision } }`, `REVISION_CONFLICT input.expectedRevision a statement of an affected subject changed in revision 3, after the expected 2`)
	b.wantAs(eveKey, one, `{"graph":null}`)
	b.wantAs(eveKey, all, `{"graphs":{"nodes":[`+bare+`]}}`)
	b.wantAs(eveKey, `{ statements(view: {graphs: ["agent://dora/notes"]}) { totalCount } }`, `{"statements":{"totalCount":0}}`)
	b.wantAs(adminKey, `mutation { setGraphPolicy(input: {visibility: PRIVATE, writers: ["eve"]}) { graph { iri policy { visibility owners writers } } } }`, `{"setGraphPolicy":{"graph":{"iri":null,"policy":{"visibility":"PRIVATE","owners":[],"writers":["agent://eve"]}}}}`)
	b.wantAs(doraKey, `{ graph { iri } graphs { nodes { iri } } }`, `{"graph":null,"graphs":{"nodes":[{"iri":"agent://dora/notes"}]}}`)
	b.wantAs(eveKey, `mutation { deleteGraph(input: {iri: "agent://dora/notes"}) { removed } }`, `GRAPH_NOT_FOUND input.iri there is no graph <agent://dora/notes>`)
	b.wantAs(doraKey, `mutation { deleteGraph(input: {iri: "agent://dora/notes"}) { removed remaining revision } }`, `{"deleteGraph":{"removed":1,"remaining":0,"revision":7}}`)
	b.wantAs(doraKey, `mutation { deleteGraph(input: {iri: "agent://dora/notes"}) { removed remaining revision } }`, `{"deleteGraph":{"removed":0,"remaining":0,"revision":7}}`)
	b.wantAs(doraKey, one, `{"graph":null}`)
	b.wantAs(adminKey, `{ graphs { nodes { iri } } changes(view: {graphs: ["agent://dora/notes"]}) { nodes { op } } }`, `{"graphs":{"nodes":[{"iri":null}]},"changes":{"nodes":[]}}`)
	b.wantAs(doraKey, `mutation { createGraph(input: {iri: "agent://dora/notes"}) { graph { statementCount } revision } }`, `{"createGraph":{"graph":{"statementCount":0},"revision":10}}`)
	b.wantAs(doraKey, `mutation { createGraph(input: {iri: "urn:any"}) { revision } }`, `PERMISSION_DENIED input.iri graph name is outside of the caller's namespace`)
	b.wantAs(doraKey, `mutation { createGraph(input: {owners: ["*"]}) { revision } }`, `INVALID input.owners owners cannot include everyone: name agents or roles`)
	if got := b.as(doraKey, `mutation { createGraph(input: {}) { graph { iri } } }`); !strings.HasPrefix(got, `{"createGraph":{"graph":{"iri":"urn:uuid:`) {
		t.Errorf("without a name: %s", got)
	}
}

// The second mutation of an operation sees the effects of the first.
func TestGraphInOneOperation(t *testing.T) {
	b := newPoliced(t, policy.Options{})
	b.wantAs(doraKey, `mutation { a: createGraph(input: {iri: "agent://dora/notes"}) { graph { statementCount } } b: applyPatches(input: {`+notes+`}) { revision } c: setGraphPolicy(input: {iri: "agent://dora/notes", visibility: PUBLIC}) { graph { statementCount policy { visibility } } } }`,
		`{"a":{"graph":{"statementCount":0}},"b":{"revision":2},"c":{"graph":{"statementCount":1,"policy":{"visibility":"PUBLIC"}}}}`)
}

// koine's own records cannot be forged with patches, by any caller.
func TestReservedThroughPatches(t *testing.T) {
	b := newPoliced(t, policy.Options{})
	for _, patch := range []string{
		`subject: {id: "agent://dora/notes"}, predicate: {id: "urn:koine:vocab:graphOwner"}, object: {value: "agent://eve"}, graph: "urn:koine:graph:system"`,
		`subject: {id: "agent://dora/notes"}, predicate: {id: "urn:koine:vocab:graphOwner"}, object: {value: "agent://eve"}`,
		`subject: {id: "agent://dora/notes", type: "urn:koine:vocab:GraphPolicy"}, predicate: {id: "ex:p"}, object: {value: 1}`,
		`subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}, graph: "urn:koine:graph:mine"`,
	} {
		for _, who := range []kg.Principal{eveKey, adminKey, {ID: "agent://x", Roles: []string{kg.RoleAdmin}, Method: "open"}} {
			for _, op := range []string{"add", "replace", "remove"} {
				if op == "remove" && strings.Contains(patch, "type:") {
					continue // which says nothing then
				}
				got := b.as(who, `mutation { applyPatches(input: {patches: [{op: `+op+`, statement: {`+patch+`}}]}) { revision } }`)
				if !strings.HasPrefix(got, "RESERVED ") {
					t.Errorf("%s %s by %s: %s", op, patch, who.Method, got)
				}
			}
		}
	}
	if r := b.store.Head().Revision; r != 0 {
		t.Errorf("something was written: revision %d", r)
	}
}

// A graph is replaced by a document, in one commit or as a whole.
func TestReplaceGraph(t *testing.T) {
	b := newPoliced(t, policy.Options{})
	replace := func(turtle, selection string) string {
		return `mutation { replaceGraph(input: {iri: "agent://dora/notes", turtle: ` + strconv.Quote(turtle) + `}) { ` + selection + ` } }`
	}
	b.wantAs(doraKey, replace(`<urn:s> <urn:p> 1, 2 .`, `added removed revision`), `{"replaceGraph":{"added":2,"removed":0,"revision":1}}`)
	b.wantAs(doraKey, replace(`<urn:s> <urn:p> 2, 3 .`, `added removed revision proposalId`), `{"replaceGraph":{"added":1,"removed":1,"revision":2,"proposalId":null}}`)
	b.wantAs(doraKey, replace(`<urn:s> <urn:p> 2, 3 .`, `added removed revision commitId`), `{"replaceGraph":{"added":0,"removed":0,"revision":2,"commitId":null}}`)
	b.wantAs(eveKey, replace(``, `removed`), `{"replaceGraph":{"removed":0}}`) // as of one that is not there
	b.wantAs(eveKey, replace(`<urn:s> <urn:p> 1 .`, `removed`), `GRAPH_NOT_FOUND input.iri there is no graph <agent://dora/notes>`)
	var large strings.Builder
	for i := range kg.MaxPatches + 1 {
		fmt.Fprintf(&large, "<urn:s> <urn:p> %d .\n", i)
	}
	b.wantAs(doraKey, replace(large.String(), `added removed`), `{"replaceGraph":{"added":9999,"removed":0}}`)
	b.wantAs(doraKey, `{ graph(iri: "agent://dora/notes") { statementCount } changes(view: {graphs: ["agent://dora/notes"]}) { nodes { op } } }`,
		`{"graph":{"statementCount":10001},"changes":{"nodes":[{"op":"add"},{"op":"add"},{"op":"remove"},{"op":"add"}]}}`)
	b.wantAs(doraKey, replace(``, `removed`), `{"replaceGraph":{"removed":10001}}`)
	b.wantAs(doraKey, `{ graph(iri: "agent://dora/notes") { statementCount } }`, `{"graph":null}`)
}
