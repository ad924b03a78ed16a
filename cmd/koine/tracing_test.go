package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"koine/cmd/koine/internal/cli"
)

// A request with a trace is followed down to the store, and none of its content is sent to
// the collector.
func TestRequestsAreTraced(t *testing.T) {
	var mu sync.Mutex
	var told [][]byte
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, body)
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
	byID, byName := map[string]*tracepb.Span{}, map[string]*tracepb.Span{}
	for _, body := range told {
		var batch collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &batch); err != nil {
			t.Fatal(err)
		}
		for _, s := range batch.ResourceSpans[0].ScopeSpans[0].Spans {
			byID[string(s.SpanId)], byName[s.Name] = s, s
		}
	}
	way := func(name string) (names []string) {
		for s := byName[name]; s != nil; s = byID[string(s.ParentSpanId)] {
			names = append(names, s.Name)
			if hex.EncodeToString(s.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%s is of another trace", s.Name)
			}
		}
		return names
	}
	if got := strings.Join(way("kg update"), " < "); got != "kg update < knowledge/update < HTTP POST /a2a" {
		t.Errorf("the update: %s", got)
	}
	at := byName["kg update"].GetStartTimeUnixNano()
	for _, stage := range []string{"kg queue", "kg execute", "kg append", "kg apply"} { // one after the other, in the update
		if got := strings.Join(way(stage), " < "); got != stage+" < kg update < knowledge/update < HTTP POST /a2a" {
			t.Errorf("a stage: %s", got)
			continue
		}
		s := byName[stage]
		if s.StartTimeUnixNano < at || s.EndTimeUnixNano < s.StartTimeUnixNano || s.EndTimeUnixNano > byName["kg update"].EndTimeUnixNano || len(s.Attributes) != 2 {
			t.Errorf("%s is from %d to %d with %v, the one before from %d", stage, s.StartTimeUnixNano, s.EndTimeUnixNano, s.Attributes, at)
		}
		at = s.EndTimeUnixNano
	}
	if got := strings.Join(way("kg view"), " < "); got != "kg view < graphql query < knowledge/query < HTTP POST /a2a" {
		t.Errorf("the query: %s", got)
	}
	if all := bytes.Join(told, nil); len(all) == 0 || bytes.Contains(all, []byte("private")) {
		t.Errorf("the collector was told what a request said: %q", all)
	}
}

// A stream token is in no trace and in no line of the log, whether its stream is opened,
// it is used again, or with something else, and its address is no Referer.
func TestStreamTokensAreTracedNowhere(t *testing.T) {
	var mu sync.Mutex
	var told bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		told.Write(body)
	}))
	defer collector.Close()
	k := startKnowing(t, "--auth", "keys", "--otlp-endpoint", collector.URL, "--log-level", "debug")
	var tokens []string
	for range 3 {
		status, text := k.send(http.MethodPost, "/stream-token", k.admin, `{"url":"/changes"}`)
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated || made.Token == "" {
			t.Fatal(status, text)
		}
		tokens = append(tokens, made.Token)
	}
	for _, x := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", "/changes", tokens[0], http.StatusOK}, {"GET", "/changes", tokens[0], http.StatusUnauthorized}, {"GET", "/changes", "x" + tokens[1], http.StatusUnauthorized},
		{"GET", "/data", tokens[1], http.StatusUnauthorized}, {"POST", "/changes", tokens[2], http.StatusUnauthorized},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
		r, err := http.NewRequestWithContext(ctx, x.method, k.url+x.path+"?streamToken="+x.token, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != x.want || response.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: got %s, Referrer-Policy %q", x.method, x.path, response.Status, response.Header.Get("Referrer-Policy"))
		}
		cancel()
		response.Body.Close()
	}
	if err := k.s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-k.s.ended; err != nil {
		t.Fatal(err, k.s.log)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(told.String(), "/changes") {
		t.Error("the collector was told of no stream")
	}
	for _, token := range tokens {
		if strings.Contains(told.String(), token) || strings.Contains(k.s.log.String(), token) {
			t.Errorf("the token %s is told to the collector or in the log:\n%s", token, k.s.log)
		}
	}
}
