package graph_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph"
	"koine/graph/documents"
	"koine/internal/operation"
	"koine/internal/slowtest"
)

const trustedText = `query Revision { revision }`

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func trusted(t testing.TB, manifest string) *documents.Trusted {
	t.Helper()
	documents, err := documents.ReadTrusted(strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func persistedQuery(hash string) map[string]any {
	return map[string]any{"persistedQuery": map[string]any{"version": float64(1), "sha256Hash": hash}}
}

// failure is the code of the first error, "" if there is none.
func failure(r operation.Result) string {
	if len(r.Errors) == 0 {
		return ""
	}
	code, _ := r.Errors[0].Extensions["code"].(string)
	return code
}

// Only trusted documents are executed, however they are named.
func TestOnlyTrustedDocuments(t *testing.T) {
	watch := `subscription { statementChanged { __typename } }`
	b := newBench(t, graph.Options{OnlyTrusted: true, Trusted: trusted(t, fmt.Sprintf(`{"rev": %q, "watch": %q}`, trustedText, watch))})
	for _, x := range []struct {
		name string
		req  operation.Request
		code string
	}{
		{"by id", operation.Request{DocumentID: "rev"}, ""},
		{"by sha256", operation.Request{DocumentID: "sha256:" + hashOf(trustedText)}, ""},
		{"by hash, as automatic persisted queries", operation.Request{Extensions: persistedQuery(hashOf(trustedText))}, ""},
		{"its text", operation.Request{Query: trustedText}, ""},
		{"its text and hash", operation.Request{Query: trustedText, Extensions: persistedQuery(hashOf(trustedText))}, ""},
		{"its text with a blank", operation.Request{Query: trustedText + " "}, "PERMISSION_DENIED"},
		{"another text", operation.Request{Query: `{ __schema { types { name } } }`}, "PERMISSION_DENIED"},
		{"another text, registered", operation.Request{Query: `{ revision }`, Extensions: persistedQuery(hashOf(`{ revision }`))}, "PERMISSION_DENIED"},
		{"the same, by its hash", operation.Request{Extensions: persistedQuery(hashOf(`{ revision }`))}, "PERMISSION_DENIED"},
		{"no syntax", operation.Request{Query: `{`}, "PERMISSION_DENIED"},
		{"nothing", operation.Request{}, "PERMISSION_DENIED"},
		{"another id", operation.Request{DocumentID: "other"}, "NOT_FOUND"},
		{"an id and a text", operation.Request{DocumentID: "rev", Query: trustedText}, "INVALID"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.req.Principal = reader
			r := b.engine.Execute(t.Context(), x.req)
			if got := failure(r); got != x.code {
				t.Errorf("code: got %q, want %q", got, x.code)
			}
			if x.code == "PERMISSION_DENIED" && r.Errors[0].Extensions["hint"] == nil {
				t.Error("there is no hint")
			}
		})
	}
	s, err := b.engine.Subscribe(t.Context(), operation.Request{DocumentID: "watch", Principal: reader})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := b.engine.Subscribe(t.Context(), operation.Request{Query: watch + "\n", Principal: reader}); err == nil {
		t.Error("a subscription that nobody vouched for was established")
	}
	if kind := b.engine.Kind(&operation.Request{DocumentID: "watch"}); kind != ast.Subscription {
		t.Errorf("kind: got %q", kind)
	}
}

// Without the mode trusted documents are one way beside others.
func TestTrustedDocuments(t *testing.T) {
	b := newBench(t, graph.Options{Trusted: trusted(t, fmt.Sprintf(`{"rev": %q, "broken": "{ nothing }"}`, trustedText))})
	for _, req := range []operation.Request{{DocumentID: "rev"}, {Query: `{ revision }`}} {
		if r := b.engine.Execute(t.Context(), req); failure(r) != "" {
			t.Errorf("%+v: %v", req, r.Errors)
		}
	}
	invalid := b.engine.InvalidDocuments()
	if len(invalid) != 1 || invalid[0].ID != "broken" || failure(operation.Result{Errors: invalid[0].Errors}) != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("invalid documents: got %v", invalid)
	}
}

func TestReadTrustedDocuments(t *testing.T) {
	slowtest.Long(t)
	for _, x := range []struct{ name, manifest, want string }{
		{"map", `{"a": "{ revision }", "b": "{ revision }"}`, ""},
		{"map by hash", `{"sha256:` + hashOf("{ revision }") + `": "{ revision }"}`, ""},
		{"operations", `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id": "a", "name": "A", "type": "query", "body": "{ revision }"}]}`, ""},
		{"nothing", `{}`, ""},
		{"no object", `["{ revision }"]`, "the manifest must be a JSON object"},
		{"no JSON", `{`, "the manifest must be a JSON object"},
		{"no text", `{"a": 1}`, `the document of "a" must be a string`},
		{"an empty text", `{"a": ""}`, `the document of "a" has no id or no text`},
		{"another hash", `{"sha256:00": "{ revision }"}`, `"sha256:00" is not the hash of its document`},
		{"another version", `{"format": "apollo-persisted-query-manifest", "version": 2, "operations": []}`, "version 2"},
		{"no id", `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"body": "{ revision }"}]}`, "has no id"},
		{"two of an id", `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id": "a", "body": "{ a }"}, {"id": "a", "body": "{ b }"}]}`, `the id "a" names two documents`},
		{"too many", manyDocuments(documents.MaxTrustedDocuments + 1), "more than 50000 documents"},
		{"many", manyDocuments(documents.MaxTrustedDocuments), ""},
		{"too large", `{"a": "` + strings.Repeat(" ", documents.MaxTrustedBytes) + `"}`, "larger than"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := documents.ReadTrusted(strings.NewReader(x.manifest))
			if got := fmt.Sprint(err); x.want == "" && err != nil || !strings.Contains(got, x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

func manyDocuments(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d": "{ f%d }"`, i, i)
	}
	b.WriteByte('}')
	return b.String()
}

// Automatic persisted queries: registered by text and hash, then requested by hash alone,
// within the bounds.
func TestPersistedQueries(t *testing.T) {
	b := newBench(t, graph.Options{PersistedQueries: 4, PersistedBytes: 4 * documents.MaxPersistedQueryBytes})
	ask := func(query string, extensions map[string]any) string {
		t.Helper()
		return failure(b.engine.Execute(t.Context(), operation.Request{Query: query, Extensions: extensions, Principal: reader}))
	}
	known := func(query string) bool { return ask("", persistedQuery(hashOf(query))) == "" }
	const notFound = "PERSISTED_QUERY_NOT_FOUND"
	r := b.engine.Execute(t.Context(), operation.Request{Extensions: persistedQuery(hashOf(trustedText))})
	if failure(r) != notFound || r.Errors[0].Message != "PersistedQueryNotFound" {
		t.Fatalf("before it is registered: %v", r.Errors)
	}
	for name, x := range map[string]struct {
		extension any
		query     string
	}{
		"another hash":    {map[string]any{"version": 1.0, "sha256Hash": hashOf("x")}, trustedText},
		"another version": {map[string]any{"version": 2.0, "sha256Hash": hashOf(trustedText)}, trustedText},
		"no version":      {map[string]any{"sha256Hash": hashOf(trustedText)}, trustedText},
		"a short hash":    {map[string]any{"version": 1.0, "sha256Hash": "00"}, trustedText},
		"no hash":         {map[string]any{"version": 1.0}, trustedText},
		"no object":       {"1", trustedText},
	} {
		if got := ask(x.query, map[string]any{"persistedQuery": x.extension}); got != "INVALID" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if known(trustedText) {
		t.Error("a query was registered under a hash that was refused")
	}
	if got := ask(`{ nothing }`, persistedQuery(hashOf(`{ nothing }`))); got != "GRAPHQL_VALIDATION_FAILED" || known(`{ nothing }`) {
		t.Errorf("an invalid query: got %q", got)
	}
	if got := ask(trustedText, persistedQuery(strings.ToUpper(hashOf(trustedText)))); got != "" || !known(trustedText) {
		t.Errorf("after it was registered: got %q", got)
	}
	if got := failure(b.engine.Execute(t.Context(), operation.Request{DocumentID: "sha256:" + hashOf(trustedText)})); got != "" {
		t.Errorf("as a document: got %q", got)
	}
	// Each generation holds two: the fourth other query drops the first one.
	for i := range 4 {
		text := fmt.Sprintf(`query Q%d { revision }`, i)
		if ask(text, persistedQuery(hashOf(text))); !known(text) {
			t.Errorf("query %d was not kept", i)
		}
	}
	if known(trustedText) {
		t.Error("more queries are kept than the bound allows")
	}
	for _, n := range []int{documents.MaxPersistedQueryBytes, documents.MaxPersistedQueryBytes + 1} {
		text := trustedText + strings.Repeat(" ", n-len(trustedText))
		if got := ask(text, persistedQuery(hashOf(text))); got != "" || known(text) != (n <= documents.MaxPersistedQueryBytes) {
			t.Errorf("a query of %d bytes: got %q, kept: %v", n, got, known(text))
		}
	}
	// Two of the largest fill a generation: the fourth other one drops the first.
	large := func(i int) string {
		text := fmt.Sprintf("query L%d { revision }", i)
		return text + strings.Repeat(" ", documents.MaxPersistedQueryBytes-len(text))
	}
	for i := range 5 {
		ask(large(i), persistedQuery(hashOf(large(i))))
	}
	if known(large(0)) || !known(large(4)) {
		t.Errorf("by bytes: the first is kept: %v, the last is: %v", known(large(0)), known(large(4)))
	}
}
