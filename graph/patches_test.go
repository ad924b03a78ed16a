package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/kg"
)

const applyPatches = `mutation ($input: ApplyPatchesInput!) { p: applyPatches(input: $input) { success statementsAffected affectedIds verificationStatus verificationDetails revision commitId } }`

// patched is a mutation in a sequence and its answer.
type patched struct {
	name, input string
	data        string // of p; "" when it is refused
	code        string
	field       string
	message     string
}

func done(affected int, ids string, revision int, commit string) string {
	return fmt.Sprintf(`{"success":true,"statementsAffected":%d,"affectedIds":[%s],"verificationStatus":"Verified","verificationDetails":null,"revision":%d,"commitId":%s}`, affected, ids, revision, commit)
}

func one(statement string) string {
	return `{"patches": [{"op": "add", "statement": ` + statement + `}]}`
}

// TestApplyPatches runs a sequence of updates, each on the result of the one before.
func TestApplyPatches(t *testing.T) {
	b := newBench(t, graph.Options{})
	commit := func(n kg.Revision) string { return fmt.Sprintf("%q", b.store.CommitID(n)) }
	sp := `"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}`
	for _, tt := range []patched{
		{name: "a value", input: one(`{` + sp + `, "object": {"value": 1}}`), data: done(1, `"https://example.org/s"`, 1, commit(1))},
		{name: "again", input: one(`{` + sp + `, "object": {"value": 1}}`), data: done(0, ``, 1, `null`)},
		{name: "types", input: one(`{"subject": {"id": "agent 7", "type": "ex:Agent"}, "predicate": {"id": "ex:p"}, "object": {"id": "ex:o", "type": "https://example.org/Thing"}}`),
			data: done(3, `"agent 7","https://example.org/o"`, 2, commit(2))},
		{name: "kinds", input: `{"patches": [
			{"op": "add", "statement": {` + sp + `, "object": {"value": 12345678901234567890}}},
			{"op": "add", "statement": {` + sp + `, "object": {"value": 1.5}}},
			{"op": "add", "statement": {` + sp + `, "object": {"value": true}}},
			{"op": "add", "statement": {` + sp + `, "object": {"value": "2026-01-01", "type": "xsd:date"}}},
			{"op": "add", "statement": {` + sp + `, "object": {"value": "chat", "language": "FR"}}}]}`,
			data: done(5, `"https://example.org/s"`, 3, commit(3))},
		{name: "nulls", input: `{"justification": null, "idempotencyKey": null, "expectedRevision": null, "dryRun": null, "taskId": null, "sessionId": null, "sourceAgentId": null, "patches": [
			{"op": "add", "statement": {"subject": {"id": "ex:n", "type": null}, "predicate": {"id": "ex:p"}, "object": {"id": null, "value": "x", "type": null, "language": null}, "graph": null, "certainty": null, "provenance": null}}]}`,
			data: done(1, `"https://example.org/n"`, 4, commit(4))},
		{name: "replace", input: `{"patches": [{"op": "replace", "statement": {"subject": {"id": "ex:n"}, "predicate": {"id": "ex:p"}, "object": {"value": "y"}, "certainty": 0.5}}]}`,
			data: done(2, `"https://example.org/n"`, 5, commit(5))},
		{name: "dry run", input: `{"dryRun": true, ` + one(`{` + sp + `, "object": {"value": "dry"}}`)[1:], data: done(1, `"https://example.org/s"`, 5, `null`)},
		{name: "expected", input: `{"expectedRevision": 5, ` + one(`{"subject": {"id": "ex:n"}, "predicate": {"id": "ex:q"}, "object": {"value": 1}}`)[1:], data: done(1, `"https://example.org/n"`, 6, commit(6))},
		{name: "conflict", input: `{"expectedRevision": "5", ` + one(`{"subject": {"id": "ex:n"}, "predicate": {"id": "ex:q"}, "object": {"value": 2}}`)[1:], code: "REVISION_CONFLICT", field: "input.expectedRevision"},
		{name: "key", input: `{"idempotencyKey": "k", ` + one(`{"subject": {"id": "ex:k"}, "predicate": {"id": "ex:q"}, "object": {"value": 1}}`)[1:], data: done(1, `"https://example.org/k"`, 7, commit(7))},
		{name: "key again", input: `{"idempotencyKey": "k", ` + one(`{"subject": {"id": "ex:k"}, "predicate": {"id": "ex:q"}, "object": {"value": 1}}`)[1:], data: done(1, `"https://example.org/k"`, 7, commit(7))},
		{name: "key with something else", input: `{"idempotencyKey": "k", ` + one(`{"subject": {"id": "ex:k"}, "predicate": {"id": "ex:q"}, "object": {"value": 2}}`)[1:], code: "IDEMPOTENCY_CONFLICT", field: "input.idempotencyKey"},
		{name: "remove", input: `{"patches": [{"op": "remove", "statement": {"subject": {"id": "ex:k"}, "predicate": {"id": "ex:q"}, "object": {"value": 1}}}]}`, data: done(1, `"https://example.org/k"`, 8, commit(8))},
		{name: "remove what is not there", input: `{"patches": [{"op": "remove", "statement": {"subject": {"id": "ex:k"}, "predicate": {"id": "ex:q"}, "object": {"value": 1}}}]}`, data: done(0, ``, 8, `null`)},

		{name: "none", input: `{"patches": []}`, code: "INVALID", message: "an update requires at least one mutation"},
		{name: "id and value", input: one(`{` + sp + `, "object": {"id": "ex:o", "value": 1}}`), code: "INVALID", field: "input.patches[0].statement.object", message: "an object requires exactly one of id and value"},
		{name: "neither", input: one(`{` + sp + `, "object": {"value": null}}`), code: "INVALID", field: "input.patches[0].statement.object"},
		{name: "certainty", input: one(`{` + sp + `, "object": {"value": 9}, "certainty": 1.2}`), code: "INVALID", field: "input.patches[0].statement.certainty"},
		{name: "predicate", input: one(`{"subject": {"id": "ex:s"}, "predicate": {"id": "likes"}, "object": {"value": 9}}`), code: "INVALID", field: "input.patches[0].statement.predicate.id", message: `"likes" is neither an absolute IRI nor a registered prefix:name`},
		{name: "second of two", input: `{"patches": [{"op": "add", "statement": {` + sp + `, "object": {"value": 9}}}, {"op": "add", "statement": {` + sp + `, "object": {"value": "x", "type": "xsd:integer"}}}]}`, code: "INVALID", field: "input.patches[1].statement.object.type"},
		{name: "a language of a number", input: one(`{` + sp + `, "object": {"value": 9, "language": "en"}}`), code: "INVALID", field: "input.patches[0].statement.object.language"},
		{name: "a value that is an object", input: one(`{` + sp + `, "object": {"value": {"a": 1}}}`), code: "INVALID", field: "input.patches[0].statement.object.value"},
		{name: "provenance", input: one(`{` + sp + `, "object": {"value": 9}, "provenance": [1]}`), code: "INVALID", field: "input.patches[0].statement.provenance"},
		{name: "graph", input: one(`{` + sp + `, "object": {"value": 9}, "graph": "not an iri"}`), code: "INVALID", field: "input.patches[0].statement.graph"},
		{name: "a newer revision", input: `{"expectedRevision": 99, ` + one(`{` + sp + `, "object": {"value": 9}}`)[1:], code: "INVALID", field: "input.expectedRevision"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.execute(applyPatches, `{"input": `+tt.input+`}`)
			if tt.code == "" {
				if want := `{"p":` + tt.data + `}`; string(r.Data) != want {
					t.Errorf("got  %s %v\nwant %s", r.Data, r.Errors, want)
				}
				return
			}
			if len(r.Errors) != 1 || string(r.Data) != `{"p":null}` {
				t.Fatalf("got %s %v, want one error", r.Data, r.Errors)
			}
			e := r.Errors[0]
			field, _ := e.Extensions["field"].(string)
			got := []any{e.Extensions["code"], field}
			if diff := cmp.Diff([]any{tt.code, tt.field}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", e.Message, diff)
			}
			if tt.message != "" && e.Message != tt.message {
				t.Errorf("got the message %q, want %q", e.Message, tt.message)
			}
		})
	}
	var data struct{ Entity struct{ Values any } }
	b.data(`{ entity(iri: "ex:s") { values(predicate: "ex:p") } }`, "", &data)
	if got, want := fmt.Sprint(data.Entity.Values), "[1 1.5 1.2345678901234567e+19 2026-01-01 true chat]"; got != want {
		t.Errorf("got the values %v, want %v", got, want)
	}
}

// The source of the assertions: the provenance's source, else the input's, else the actor,
// else the principal.
func TestApplyPatchesSource(t *testing.T) {
	b := newBench(t, graph.Options{})
	patch := func(value int, provenance string) string {
		return fmt.Sprintf(`{"op": "add", "statement": {"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"value": %d}%s}}`, value, provenance)
	}
	b.execute(applyPatches, `{"input": {"patches": [`+patch(1, "")+`]}}`)
	b.execute(applyPatches, `{"input": {"sourceAgentId": "b", "patches": [`+patch(2, "")+`, `+patch(3, `, "provenance": {"sourceAgentId": "c", "n": 1}`)+`]}}`)
	req := b.request(applyPatches, `{"input": {"patches": [`+patch(4, "")+`]}}`)
	req.Actor = "agent://d"
	b.engine.Execute(t.Context(), req)
	r := b.execute(`{ statements(orderBy: {by: OBJECT}) { nodes { assertions { source: sourceId provenance } } } }`, "")
	want := `{"statements":{"nodes":[{"assertions":[{"source":"agent://reader","provenance":null}]},{"assertions":[{"source":"agent://b","provenance":null}]},{"assertions":[{"source":"agent://c","provenance":{"n":1,"sourceAgentId":"c"}}]},{"assertions":[{"source":"agent://d","provenance":null}]}]}}`
	if string(r.Data) != want {
		t.Errorf("got  %s %v\nwant %s", r.Data, r.Errors, want)
	}
}

// The validity in a patch is returned with its assertion, and an invalid one is refused at
// its member.
func TestApplyPatchesValidity(t *testing.T) {
	b := newBench(t, graph.Options{})
	patch := func(value int, validity string) string {
		return fmt.Sprintf(`{"input": {"patches": [{"op": "add", "statement": {"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"value": %d}%s}}]}}`, value, validity)
	}
	for i, validity := range []string{``, `, "validFrom": "1990-01-01T02:00:00.0009+02:00"`, `, "validTo": "2031-01-01T00:00:00Z"`, `, "validFrom": null, "validTo": null`} {
		if r := b.execute(applyPatches, patch(i, validity)); len(r.Errors) > 0 {
			t.Fatal(r.Errors)
		}
	}
	r := b.execute(`{ statements(orderBy: {by: OBJECT}) { nodes { assertions { validFrom validTo } } } }`, "")
	want := `{"statements":{"nodes":[{"assertions":[{"validFrom":null,"validTo":null}]},{"assertions":[{"validFrom":"1990-01-01T00:00:00.000Z","validTo":null}]},{"assertions":[{"validFrom":null,"validTo":"2031-01-01T00:00:00.000Z"}]},{"assertions":[{"validFrom":null,"validTo":null}]}]}}`
	if string(r.Data) != want {
		t.Errorf("got  %s %v\nwant %s", r.Data, r.Errors, want)
	}
	r = b.execute(applyPatches, patch(9, `, "validFrom": "2031-01-01T00:00:00Z", "validTo": "2031-01-01T00:00:00Z"`))
	if len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != "input.patches[0].statement.validTo" || r.Errors[0].Extensions["code"] != "INVALID" {
		t.Errorf("an end at the beginning: got %v", r.Errors)
	}
}

func TestMutationsSwitchedOff(t *testing.T) {
	b := newBench(t, graph.Options{NoMutations: true})
	r := b.execute(applyPatches, `{"input": `+one(`{"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"value": 1}}`)+`}`)
	if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "PERMISSION_DENIED" || b.store.Head().Revision != 0 {
		t.Errorf("got %s %v at revision %d", r.Data, r.Errors, b.store.Head().Revision)
	}
}

// Two mutations in one operation run one after the other; the answer's
// position is behind the last.
func TestMutationsInOrder(t *testing.T) {
	b := newBench(t, graph.Options{})
	q := `mutation { ` + strings.Join([]string{`a`, `b`}, `: applyPatches(input: {patches: [{op: replace, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "x"}}}], justification: "why"}) { revision } `) +
		`: applyPatches(input: {patches: [{op: replace, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "y"}}}]}) { revision } }`
	r := b.execute(q, "")
	if want := `{"a":{"revision":1},"b":{"revision":2}}`; string(r.Data) != want || r.Position.Revision != 2 {
		t.Errorf("got %s %v at %d, want %s at 2", r.Data, r.Errors, r.Position.Revision, want)
	}
}

// The embedding of a patch is returned with its assertion, to the last digit of 32 bits, and
// each source has its own. An invalid one is refused at its member.
func TestApplyPatchesEmbedding(t *testing.T) {
	b := newBench(t, graph.Options{})
	patch := func(embedding string) string {
		return fmt.Sprintf(`{"input": {"patches": [{"op": "add", "statement": {"subject": {"id": "ex:t"}, "predicate": {"id": "ex:p"}, "object": {"value": 1}}}, {"op": "add", "statement": {"subject": {"id": "ex:s"}, "predicate": {"id": "ex:p"}, "object": {"value": "text"}}%s}]}}`, embedding)
	}
	numbers := func(n int) string { return "[" + strings.Repeat("0.5,", n-1) + "1]" }
	for _, tt := range []struct{ embedding, code, field string }{
		{`, "embedding": {"model": "m"}`, "GRAPHQL_VALIDATION_FAILED", ""},
		{`, "embedding": {"model": "m m", "vector": [1]}`, "INVALID", "input.patches[1].embedding.model"},
		{`, "embedding": {"model": "m", "vector": 1}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": ["1"]}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": [null]}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": [1, 1e39]}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": [0, 0]}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": []}`, "INVALID", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": ` + numbers(kg.MaxEmbeddingNumbers+1) + `}`, "LIMIT_EXCEEDED", "input.patches[1].embedding.vector"},
		{`, "embedding": {"model": "m", "vector": ` + numbers(kg.MaxEmbeddingNumbers) + `}`, "", ""},
	} {
		r := b.execute(applyPatches, patch(tt.embedding))
		if tt.code == "" && len(r.Errors) == 0 {
			continue
		}
		if len(r.Errors) != 1 {
			t.Fatalf("%.80s: got %s %v, want one error", tt.embedding, r.Data, r.Errors)
		}
		field, _ := r.Errors[0].Extensions["field"].(string)
		if code := r.Errors[0].Extensions["code"]; code != tt.code || tt.field != "" && field != tt.field {
			t.Errorf("%.80s: got %v at %q (%s), want %s at %q", tt.embedding, code, field, r.Errors[0].Message, tt.code, tt.field)
		}
	}
	b.execute(applyPatches, patch(`, "embedding": {"model": "m", "vector": [0.1, -3e-5, 2]}`))
	b.execute(`mutation { applyPatches(input: {sourceAgentId: "b", patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "text"}}, embedding: {model: "n", vector: [1, 0.25]}}]}) { revision } }`, "")
	const shown = `assertions { sourceId embedding { __typename model dimension v: vector } }`
	reader, other := `{"sourceId":"agent://reader","embedding":{"__typename":"Embedding","model":"m","dimension":3,"v":[0.1,-3e-05,2]}}`, `{"sourceId":"agent://b","embedding":{"__typename":"Embedding","model":"n","dimension":2,"v":[1,0.25]}}`
	for query, want := range map[string]string{
		`{ statements(where: {subject: {eq: "ex:s"}}) { nodes { ` + shown + ` } } }`:                                                                                                              `{"statements":{"nodes":[{"assertions":[` + reader + `,` + other + `]}]}}`,
		`{ statements(where: {subject: {eq: "ex:t"}}) { nodes { ` + shown + ` } } }`:                                                                                                              `{"statements":{"nodes":[{"assertions":[{"sourceId":"agent://reader","embedding":null}]}]}}`,
		`{ why(statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "text"}}) { origins { assertion { sourceId embedding { __typename model dimension v: vector } } } } }`: `{"why":{"origins":[{"assertion":` + reader + `},{"assertion":` + other + `}]}}`,
	} {
		if r := b.execute(query, ""); string(r.Data) != want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", query, r.Data, r.Errors, want)
		}
	}
}
