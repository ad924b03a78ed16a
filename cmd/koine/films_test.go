package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// films is the part of the film graph that is in the repository, or the file of
// N-Quads that KOINE_FILMS names.
func films() string {
	return cmp.Or(os.Getenv("KOINE_FILMS"), "../../internal/rdf/testdata/movies-excerpt.nq.gz")
}

// The film graph is loaded into a running server, and queried, watched and patched through
// A2A.
func TestFilmGraphThroughA2A(t *testing.T) {
	_, url := startServer(t)
	out, err := exec.Command("koine", "load", films(), "--url", url).CombinedOutput()
	if err != nil {
		t.Fatalf("load: %v\n%s", err, out)
	}
	t.Logf("%s", out)

	film := callA2A[struct {
		Data struct {
			Statements struct {
				Nodes []struct{ Subject struct{ IRI string } }
			}
			Stats struct{ Statements int }
		}
	}](t, url, "knowledge/query", map[string]any{"query": `{
		statements(where: {predicate: {eq: "http://rdf.freebase.com/ns/film/film/starring"}}, first: 1) { nodes { subject { iri } } }
		stats { statements }
	}`})
	if len(film.Data.Statements.Nodes) != 1 || film.Data.Stats.Statements < 1000 {
		t.Fatalf("the films: got %+v", film)
	}
	subject := film.Data.Statements.Nodes[0].Subject.IRI

	events := subscribe(t, url, `subscription($film: IRI!) { statementChanged(where: {subject: {eq: $film}}) { __typename } }`, map[string]any{"film": subject})
	receipt := callA2A[struct {
		Success            bool
		StatementsAffected int
	}](t, url, "knowledge/update", map[string]any{"justification": "seen last night", "mutations": []any{map[string]any{
		"op": "add", "statement": map[string]any{
			"subject": map[string]any{"id": subject}, "predicate": map[string]any{"id": "https://films.example/seen"},
			"object": map[string]any{"value": true}, "certainty": 0.9,
		}}}})
	if !receipt.Success || receipt.StatementsAffected != 1 {
		t.Fatalf("the update: got %+v", receipt)
	}
	line, err := events.ReadString('\n')
	if err != nil || !strings.Contains(line, `"op":"add"`) || !strings.Contains(line, `"predicate":{"id":"https://films.example/seen"},"object":{"value":true,"type":"xsd:boolean"},"certainty":0.9`) {
		t.Fatalf("the event: got %s, %v", line, err)
	}
	seen := callA2A[struct {
		Data struct{ Entity struct{ Value any } }
	}](t, url, "knowledge/query", map[string]any{
		"query":     `query($film: IRI!) { entity(iri: $film) { value(predicate: "https://films.example/seen") } }`,
		"variables": map[string]any{"film": subject}, "requiredCertainty": 0.8,
	})
	if seen.Data.Entity.Value != true {
		t.Errorf("the film afterwards: got %+v", seen)
	}
}

// post sends a JSON-RPC request.
func post(t *testing.T, url, method string, params any) *http.Response {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/a2a", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", method, response.Status)
	}
	return response
}

// callA2A calls a method and gives its result.
func callA2A[T any](t *testing.T, url, method string, params any) T {
	t.Helper()
	var answer struct {
		Result *T
		Error  any
	}
	if err := json.NewDecoder(post(t, url, method, params).Body).Decode(&answer); err != nil || answer.Result == nil {
		t.Fatalf("%s: %v, %v", method, answer.Error, err)
	}
	return *answer.Result
}

// subscribe opens a stream; its changes can be read as lines.
func subscribe(t *testing.T, url, query string, variables any) *bufio.Reader {
	t.Helper()
	response := post(t, url, "knowledge/subscribe", map[string]any{"subscriptionQuery": query, "variables": variables})
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("the stream is %s", kind)
	}
	return bufio.NewReader(response.Body)
}
