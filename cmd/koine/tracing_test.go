package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// A request that carries a trace is followed down to the store, and nothing that
// it says is told to the collector.
func TestRequestsAreTraced(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		told.Write(append(body, '\n'))
	}))
	defer collector.Close()
	s, url := startServer(t, "--otlp-endpoint", collector.URL)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:private-subject"},"predicate":{"id":"urn:p"},"object":{"value":"private value"}}}]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"knowledge/query","params":{"query":"{ statements(first: 1) { nodes { id } } }"}}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/a2a", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Agent-ID", "private-agent")
		r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Fatal(err, s.log)
	}
	mu.Lock()
	defer mu.Unlock()
	type span struct{ TraceID, SpanID, ParentSpanID, Name string }
	byID, byName := map[string]span{}, map[string]span{}
	for _, line := range strings.Split(strings.TrimSpace(told.String()), "\n") {
		var batch struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.Unmarshal([]byte(line), &batch); err != nil {
			t.Fatal(err, line)
		}
		for _, s := range batch.ResourceSpans[0].ScopeSpans[0].Spans {
			byID[s.SpanID], byName[s.Name] = s, s
		}
	}
	way := func(name string) (names []string) {
		for s, ok := byName[name], true; ok && s.Name != ""; s, ok = byID[s.ParentSpanID] {
			names = append(names, s.Name)
			if s.TraceID != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%s is of another trace", s.Name)
			}
		}
		return names
	}
	if got := strings.Join(way("kg update"), " < "); got != "kg update < knowledge/update < HTTP POST /a2a" {
		t.Errorf("the update: %s", got)
	}
	if got := strings.Join(way("kg view"), " < "); got != "kg view < graphql query < knowledge/query < HTTP POST /a2a" {
		t.Errorf("the query: %s", got)
	}
	if strings.Contains(told.String(), "private") {
		t.Errorf("the collector was told what a request said: %s", told.String())
	}
}
