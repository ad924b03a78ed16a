package transport_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/sse"
	"koine/kg"
)

// The places where a budget cut an answer, and unknown names, are reported beside data; the
// cursor continues there. Without either there is no report.
func TestTruncatedAndHints(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("name"), kg.Integer(1)), add(iri("t"), iri("name"), kg.Integer(2)))
	server := b.serve(t, transport.Options{}, sse.Options{})
	type told struct {
		Data struct {
			Entities struct{ Nodes []struct{ IRI string } }
		}
		Extensions struct {
			Truncated []struct {
				Path           []any
				Reason, Cursor string
			}
			Hints []struct {
				Path    []any
				Message string
				Nearest []string
			}
		}
	}
	ask := func(body string) (raw string, answer told) {
		t.Helper()
		res, err := server.Client().Post(server.URL+"/graphql", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err, string(text))
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		return string(text), answer
	}
	const whole = `{"query":"{ entities { nodes { iri } } }"`
	_, cut := ask(whole + `,"extensions":{"budget":{"maxBytes":60}}}`)
	if got := cut.Extensions.Truncated; len(cut.Data.Entities.Nodes) != 1 || len(got) != 1 || got[0].Reason != "BYTES" || len(got[0].Path) != 1 || got[0].Path[0] != "entities" {
		t.Fatalf("got %+v, want one entity and the cut behind it", cut)
	}
	first := cut.Data.Entities.Nodes[0]
	_, rest := ask(`{"query":"query ($c: Cursor) { entities(after: $c) { nodes { iri } } }","variables":{"c":"` + cut.Extensions.Truncated[0].Cursor + `"}}`)
	if n := rest.Data.Entities.Nodes; len(n) != 1 || n[0] == first || rest.Extensions.Truncated != nil {
		t.Errorf("behind the cut: got %+v, want the other entity", rest)
	}
	if raw, _ := ask(whole + `}`); strings.Contains(raw, "truncated") || strings.Contains(raw, "hints") {
		t.Errorf("a whole answer tells of a cut or a hint: %s", raw)
	}
	_, hinted := ask(`{"query":"{ entities(where: {property: {predicate: \"ex:nmae\"}}) { nodes { iri } } }"}`)
	hints := hinted.Extensions.Hints
	if len(hints) != 1 || !strings.HasPrefix(hints[0].Message, "the graphs that you may read have no predicate ") {
		t.Fatalf("got the hints %+v, want one", hints)
	}
	if diff := cmp.Diff([]any{[]any{"entities"}, []string{iri("name").Value()}}, []any{hints[0].Path, hints[0].Nearest}); diff != "" {
		t.Errorf("hint (-want +got):\n%s", diff)
	}
}
