package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/documents"
	"koine/graph/transport"
	"koine/internal/sse"
)

// Documents that are named and not sent: ids, hashes, and both by GET and POST.
func TestNamedDocuments(t *testing.T) {
	documents, err := documents.ReadTrusted(strings.NewReader(`{"rev": "query R { revision }", "write": "mutation { applyPatches(input: {patches: []}) { success } }"}`))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, graph.Options{Trusted: documents})
	server := b.serve(t, transport.Options{}, sse.Options{})
	hash := hashOf(`{ revision }`)
	extension := func(hash string) string {
		return fmt.Sprintf(`{"persistedQuery":{"version":1,"sha256Hash":%q}}`, hash)
	}
	ok := `{"data":{"revision":0},"extensions":{"revision":0,"position":"<head>"}}`
	unknown := `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND","hint":"Send the query's text with its hash once."}}],"extensions":{"revision":0,"position":"<head>"}}`
	newer := map[string]string{"Accept": "application/graphql-response+json"}
	for _, x := range []exchange{
		{name: "by id", body: `{"documentId":"rev"}`, status: 200, reply: ok},
		{name: "by id, GET", method: "GET", path: get("documentId", "rev"), status: 200, reply: ok},
		{name: "by hash", body: `{"documentId":"sha256:` + hashOf("query R { revision }") + `"}`, status: 200, reply: ok},
		{name: "unknown id", header: newer, body: `{"documentId":"other"}`, status: 400, reply: "*"},
		{name: "id of a wrong type", body: `{"documentId":5}`, status: 400, reply: refusal("documentId must be a string", "INVALID")},
		{name: "a mutation by GET", method: "GET", path: get("documentId", "write"), status: 405, reply: "*", headers: map[string]string{"Allow": "POST"}},
		{name: "not registered", body: `{"extensions":` + extension(hash) + `}`, status: 200, reply: unknown},
		{name: "not registered, the newer type", header: newer, body: `{"extensions":` + extension(hash) + `}`, status: 400, reply: unknown},
		{name: "another hash", header: newer, body: `{"query":"{ revision }","extensions":` + extension(hashOf("x")) + `}`, status: 400, reply: "*"},
		{name: "registered", body: `{"query":"{ revision }","extensions":` + extension(hash) + `}`, status: 200, reply: ok},
		{name: "asked for", body: `{"extensions":` + extension(hash) + `}`, status: 200, reply: ok},
		{name: "asked for by GET", method: "GET", path: get("extensions", extension(hash)), status: 200, reply: ok},
	} {
		t.Run(x.name, func(t *testing.T) { b.exchange(t, server, x) })
	}
}
