package facts_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"koine/graph"
	"koine/internal/dialect/facts"
	"koine/internal/operation"
	"koine/kg"
)

type door struct {
	t       *testing.T
	engine  *graph.Engine
	handler http.Handler
	denied  []kg.Code
}

func newDoor(t *testing.T) *door {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": "https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, engine: graph.NewEngine(graph.Deps{Store: store, Prefixes: prefixes}, graph.Options{NewNames: "https://example.org/id/"})}
	d.handler = facts.NewHandler(d.engine, func(_ context.Context, code kg.Code) { d.denied = append(d.denied, code) })
	return d
}

func (d *door) send(method, body string) (int, string) {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, facts.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestFactsOverHTTP(t *testing.T) {
	d := newDoor(t)
	for _, row := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"POST", `{"triples": [["Ada", "ex:wrote", "Note G"], ["Ada", "ex:born", 1815]]}`, 200, `{"entities":[{"label":"Ada","iri":"https://example.org/id/ada","made":true},`},
		{"POST", `{"triples": [["Ada", "ex:wrote", "Note G"]]}`, 200, `"made":false}],"known":[{"subject":{"id":"https://example.org/id/ada"}`},
		{"PUT", `{"label": "Ada", "properties": [{"predicate": "ex:born", "objects": [{"value": 1816}]}]}`, 200, `"statementsAffected":2,`},
		{"PUT", `{"label": "Ada", "properties": [{"predicate": "ex:born", "objects": [{"value": 1816}]}]}`, 200, `"statementsAffected":0,`},
		{"PUT", `{"properties": []}`, 400, `"code":"INVALID","message":"put requires an id`},
		{"POST", `{"facts": "Ada"}`, 400, `"field":"input.facts"`},
		{"POST", `{"fact": "(Ada) ex:p 1"}`, 400, `{"error":{"code":`},
		{"POST", `[]`, 400, `the body must be a JSON object`},
		{"POST", `{`, 400, `the body is not valid JSON`},
		{"POST", `{"facts": "ex:a ex:p 1 [by bob]"}`, 400, `the source and the time`},
		{"POST", `{"facts": "` + strings.Repeat(" ", facts.MaxBodyBytes) + `"}`, 413, `LIMIT_EXCEEDED`},
		{"GET", ``, 405, `use POST`},
	} {
		if status, body := d.send(row.method, row.body); status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("%s %.80s: %d %s, want %d with %s", row.method, row.body, status, body, row.status, row.want)
		}
	}
	if len(d.denied) != 7 {
		t.Errorf("%d errors are told: %v", len(d.denied), d.denied)
	}
}

// Callers over HTTP and over GraphQL at the same time make one entity.
func TestBothDoorsMakeOneEntity(t *testing.T) {
	d := newDoor(t)
	const callers = 16
	var wait sync.WaitGroup
	begin := make(chan struct{})
	for n := range callers {
		wait.Go(func() {
			<-begin
			if n%2 == 0 {
				if status, body := d.send("POST", `{"facts": "(Ada)\n  a ex:Person"}`); status != 200 {
					t.Error(status, body)
				}
				return
			}
			r := d.engine.Execute(t.Context(), operation.Request{Query: `mutation { put(input: {label: "Ada", type: "ex:Person", properties: []}) { update { revision } } }`})
			if len(r.Errors) > 0 {
				t.Error(r.Errors)
			}
		})
	}
	close(begin)
	wait.Wait()
	r := d.engine.Execute(t.Context(), operation.Request{Query: `{ entities(where: {label: {eq: "Ada"}}) { totalCount } }`})
	if string(r.Data) != `{"entities":{"totalCount":1}}` {
		t.Errorf("got %s", r.Data)
	}
}
