package rdfdata_test

import (
	"encoding/json"
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
	"koine/internal/rdf"
)

func TestJSONLD(t *testing.T) {
	contexts := &rdf.JSONLDContexts{}
	if err := contexts.Add("https://c.example/people", []byte(`{"@context":{"name":"https://c.example/name"}}`)); err != nil {
		t.Fatal(err)
	}
	f := start(t, rdfdata.Options{JSONLD: rdf.JSONLDOptions{MaxBytes: 200, Contexts: contexts, Holders: rdf.NewJSONLDHolders(1)}})
	const ld, plain = "Content-Type: application/ld+json", "Content-Type: application/json"
	const link = `Link: <https://other.example/>; rel="next", </people>; title="a, b"; rel="x http://www.w3.org/ns/json-ld#context"`
	ann := `{"@id":"http://x/ann","name":"Ann"}`
	for _, c := range []struct {
		name, query, text string
		header            []string
		status            int
		says              string // of an error
		line              int
		quads, rejected   int
		dropped           int
	}{
		{name: "a context by its IRI", text: `{"@context":"https://c.example/people","@id":"http://x/ann","name":"Ann"}`, header: []string{ld}, status: 200, quads: 1},
		{name: "a context by Link", text: ann, header: []string{plain, strings.Replace(link, "/people", "https://c.example/people", 1)}, status: 200, quads: 1},
		{name: "a context by Link, relative to the document", text: ann, header: []string{plain, link, "Content-Location: https://c.example/x/y"}, status: 200, quads: 1},
		{name: "a Link of JSON-LD", text: ann, header: []string{ld, strings.Replace(link, "/people", "https://c.example/people", 1)}, status: 400, says: "a context may be missing", line: 1},
		{name: "an unknown Link", text: ann, header: []string{plain, strings.Replace(link, "/people", "https://c.example/none", 1)}, status: 400, says: "the context https://c.example/none is unknown, and contexts are never fetched", line: 1},
		{name: "two Links", text: ann, header: []string{plain, link + `, <https://c.example/people>; rel="http://www.w3.org/ns/json-ld#context"`}, status: 400, says: "multiple context link headers"},
		{name: "relative to the request", text: `{"@id":"http://x/a","http://x/p":{"@id":"rel/b"},"http://x/q":"kept"}`, header: []string{ld}, status: 200, quads: 2},
		{name: "relative to nothing", text: "{\"@context\":{\"@base\":null},\"@id\":\"http://x/a\",\n\"http://x/p\":{\"@id\":\"rel/b\"},\"http://x/q\":\"kept\"}", header: []string{ld}, status: 400, says: `at /http:~1~1x~1p: the IRI "rel/b" is relative`, line: 2},
		{name: "relative to nothing, counted", query: "?continueOnError=true", text: `{"@context":{"@base":null},"@id":"http://x/a","http://x/p":{"@id":"rel/b"},"http://x/q":"kept"}`, header: []string{ld}, status: 200, quads: 1, rejected: 1},
		{name: "a key that means nothing", text: `{"@id":"http://x/a","http://x/p":1,"name":"x"}`, header: []string{ld}, status: 200, quads: 1, dropped: 1},
		{name: "too much to hold", text: `{"http://x/p":["` + strings.Repeat("x", 200) + `"],"@id":"http://x/a"}`, header: []string{ld}, status: 413, says: "a JSON-LD document may have any size if it is in streaming order", line: 1},
		{name: "as much, in streaming order", text: `{"@id":"http://x/a","http://x/p":[` + strings.Repeat(`"x",`, 100) + `1]}`, header: []string{ld}, status: 200, quads: 101},
	} {
		a := f.ask("POST", c.query, strings.NewReader(c.text), c.header...)
		if a.status != c.status {
			t.Errorf("%s: got status %d, %s", c.name, a.status, a.body)
			continue
		}
		if c.status >= 400 {
			if p := a.problem(t); !strings.Contains(p.Message, c.says) || p.Line != c.line || c.status == 413 && p.Reason != "LIMIT_EXCEEDED" {
				t.Errorf("%s: got %+v", c.name, p)
			}
			continue
		}
		var r struct {
			Quads, Rejected, Dropped int
			Errors, Remarks          []string
		}
		if err := json.Unmarshal(a.body, &r); err != nil || r.Quads != c.quads || r.Rejected != c.rejected || r.Dropped != c.dropped || len(r.Errors) != c.rejected || len(r.Remarks) != c.dropped {
			t.Errorf("%s: got %s, error %v", c.name, a.body, err)
		}
	}
}
