package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// embeddedPatches is the JSON of patches with embeddings of as many numbers as one may have.
func embeddedPatches(model string, n int) string {
	vector := "[" + strings.Repeat("1,", kg.MaxEmbeddingNumbers-1) + "1]"
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"op":"add","statement":{"subject":{"id":"urn:many"},"predicate":{"id":"urn:p"},"object":{"value":%d}},"embedding":{"model":%q,"vector":%s}}`, i, model, vector)
	}
	return "[" + b.String() + "]"
}

// TestEmbeddingsPastACommit proves that embeddings that fit in a commit are taken, that more are
// 413 and change nothing, and that a body of more than 8 MiB is 413. The variables of applyPatches
// are smaller than a commit, so its update is too large by the embeddings that it removes.
func TestEmbeddingsPastACommit(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const fit, past = kg.MaxCommitBytes / (4*kg.MaxEmbeddingNumbers + 64), kg.MaxCommitBytes/(4*kg.MaxEmbeddingNumbers) + 1
	_, url := startServer(t)
	update := func(patches string) (int, string) {
		return ask(t, http.MethodPost, url+"/", "bob", `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":`+patches+`}}`)
	}
	apply := func(patches string) (int, string) {
		return ask(t, http.MethodPost, url+"/graphql", "bob", `{"query":"mutation ($p: [PatchInput!]!) { applyPatches(input: {patches: $p}) { success } }","variables":{"p":`+patches+`}}`)
	}
	taken := func(what string, status int, text string) {
		t.Helper()
		if status != http.StatusOK || !strings.Contains(text, `"success":true`) {
			t.Fatalf("%s: %d %.300s", what, status, text)
		}
	}
	refused := func(what string, status int, text string) {
		t.Helper()
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "LIMIT_EXCEEDED") {
			t.Errorf("%s: %d %.300s", what, status, text)
		}
	}
	status, text := update(embeddedPatches("m", fit))
	taken("as many as fit", status, text)
	status, text = update(embeddedPatches("n", past))
	refused("more", status, text)
	status, text = update(embeddedPatches("m", 1) + strings.Repeat(" ", 8<<20))
	refused("a large body of JSON-RPC", status, text)
	status, text = apply(embeddedPatches("m", 1) + strings.Repeat(" ", 8<<20))
	refused("a large body of GraphQL", status, text)
	status, text = update(strings.ReplaceAll(embeddedPatches("m", past-fit), `"urn:many"`, `"urn:more"`))
	taken("a few more", status, text)
	status, text = apply(removals("urn:many", fit, "urn:more", past-fit))
	refused("the removal of all", status, text)
	contains(t, "what is there", askGraphQL(t, url, "bob", `{ statements(where: {predicate: {eq: "urn:p"}}) { totalCount } }`), fmt.Sprintf(`"totalCount":%d`, past))
	status, text = apply(removals("urn:many", fit-1, "urn:more", 0))
	taken("the removal of what fits", status, text)
}

// removals is the JSON of patches that remove the statements of embeddedPatches.
func removals(subject string, n int, other string, m int) string {
	var list []string
	for i := range n + m {
		if i == n {
			subject = other
		}
		list = append(list, fmt.Sprintf(`{"op":"remove","statement":{"subject":{"id":%q},"predicate":{"id":"urn:p"},"object":{"value":%d}}}`, subject, i%n))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestUnseenEmbeddings proves that the doors that show assertions show the embedding of one in a
// private graph to its readers only, and that of an agent in quarantine to nobody; and that no door
// shows an embedding as a statement.
func TestUnseenEmbeddings(t *testing.T) {
	slowtest.Long(t)
	k := startKnowing(t, "--auth", "keys", "--search", "on")
	bob, _ := k.create(`{agentId: "bob"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	const fact = `subject: {id: "urn:s"}, predicate: {id: "urn:p"}, object: {value: "words"}, graph: "agent://bob/notes"`
	const shown = `embedding { model dimension vector }`
	for _, change := range []string{
		`createGraph(input: {iri: "agent://bob/notes", readers: []}) { revision }`,
		`applyPatches(input: {patches: [{op: add, statement: {` + fact + `}, embedding: {model: "model-of-bob", vector: [0.125, 77]}}]}) { revision }`,
	} {
		if got := k.graphql(bob, "mutation { "+change+" }"); strings.Contains(got, "errors") {
			t.Fatal(got)
		}
	}
	type door struct {
		path, query string
		shows       bool // to those who see the assertion
	}
	doors := func(fact string) []door {
		return []door{
			{query: `{ statements(where: {subject: {eq: "urn:s"}}, view: {allGraphs: true}) { nodes { assertions { ` + shown + ` } } } }`, shows: true},
			{query: `{ entity(iri: "urn:s", view: {allGraphs: true}) { out { nodes { assertions { ` + shown + ` } } } } }`, shows: true},
			{query: `{ changes(view: {allGraphs: true}, first: 100) { nodes { statement { assertions { ` + shown + ` } } } } }`, shows: true},
			{query: `{ why(statement: {` + fact + `}) { origins { assertion { ` + shown + ` } } } }`, shows: true},
			{query: `{ match(pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}, view: {allGraphs: true}, first: 100) { nodes { values } } }`},
			{query: `{ statements(view: {allGraphs: true}, first: 100) { nodes { predicate object { ... on Literal { value } } } } }`},
			{query: `{ vocabulary(view: {allGraphs: true}) { predicates(first: 100) { nodes { iri } } } }`},
			{query: `{ search(query: "model bob words 77") { nodes { entity { iri } matches { text } } } }`},
			{path: "/data?format=nq&assertions=rdf", shows: true},
			{path: "/data?format=nq"},
		}
	}
	check := func(what, fact, model string, sees map[string]bool) {
		t.Helper()
		for _, d := range doors(fact) {
			for who, sees := range sees {
				key := map[string]string{"bob": bob, "eve": eve}[who]
				var text string
				if d.path != "" {
					_, text = k.send(http.MethodGet, d.path, key, "")
				} else {
					text = k.graphql(key, d.query)
				}
				if shows := d.shows && sees; strings.Contains(text, model) != shows {
					t.Errorf("%s: %s%s shows %s:\n%s", what, d.path, d.query, who, text)
				}
			}
		}
	}
	check("private", fact, "model-of-bob", map[string]bool{"bob": true, "eve": false})
	const open = `subject: {id: "urn:s"}, predicate: {id: "urn:p"}, object: {value: "open"}`
	if got := k.graphql(bob, `mutation { applyPatches(input: {patches: [{op: add, statement: {`+open+`}, embedding: {model: "open-model", vector: [1]}}]}) { revision } }`); strings.Contains(got, "errors") {
		t.Fatal(got)
	}
	check("open", open, "open-model", map[string]bool{"bob": true, "eve": true})
	if got := k.graphql(k.admin, `mutation { quarantineAgent(input: {agentId: "bob", justification: "wrong"}) { agentId } }`); strings.Contains(got, "errors") {
		t.Fatal(got)
	}
	check("quarantine", open, "open-model", map[string]bool{"bob": false, "eve": false})
}
