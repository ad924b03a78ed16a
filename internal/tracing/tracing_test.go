package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/tracing"
	"koine/kg"
)

// collector keeps what is sent to it.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	header http.Header
	status int
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: 200}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies, c.header = append(c.bodies, r.Method+" "+r.URL.Path+" "+string(body)), r.Header
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

type sent struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []attribute }
		ScopeSpans []struct{ Spans []span }
	}
}

type attribute struct {
	Key   string
	Value struct{ StringValue, IntValue string }
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []attribute
	Status                              struct {
		Code    int
		Message string
	}
}

func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

func closeTracing(t *testing.T, tr *tracing.Tracing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A request's span is below that of its traceparent, and what it does is below
// it; the collector gets them in the form of OTLP.
func TestSpans(t *testing.T) {
	c := newCollector(t)
	tr := tracing.New(tracing.Options{Endpoint: c.URL + "/", Headers: map[string]string{"X-Token": "t1"}, Version: "1.2"})
	r := httptest.NewRequest("POST", "/a2a", nil)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, end := tr.Request(r, "POST /a2a")
	inner, done := tr.Span(ctx, "knowledge/update")
	_, stored := tr.Span(inner, "kg update")
	stored(kg.Errorf(kg.CodeReserved, "secret text"))
	done(errors.New("secret text"))
	end(503)
	closeTracing(t, tr)
	if len(c.bodies) != 1 || c.header.Get("X-Token") != "t1" || c.header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %q with %v", c.bodies, c.header)
	}
	body, ok := strings.CutPrefix(c.bodies[0], "POST /v1/traces ")
	var got sent
	if err := json.Unmarshal([]byte(body), &got); !ok || err != nil {
		t.Fatal(err, c.bodies[0])
	}
	if strings.Contains(body, "secret") {
		t.Errorf("the text of an error was sent: %s", body)
	}
	spans := map[string]span{}
	for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
		spans[s.Name] = s
		if s.TraceID != "0af7651916cd43dd8448eb211c80319c" || len(s.SpanID) != 16 || s.StartTimeUnixNano == "" || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("got %+v", s)
		}
	}
	request, method, store := spans["HTTP POST /a2a"], spans["knowledge/update"], spans["kg update"]
	if request.ParentSpanID != "b7ad6b7169203331" || method.ParentSpanID != request.SpanID || store.ParentSpanID != method.SpanID {
		t.Errorf("not below each other: %+v", spans)
	}
	if request.Kind != 2 || method.Kind != 1 || request.attribute("http.route") != "POST /a2a" || request.attribute("http.response.status_code") != "503" || request.Status.Code != 2 {
		t.Errorf("the request: %+v", request)
	}
	if method.attribute("koine.code") != "INTERNAL" || store.attribute("koine.code") != "RESERVED" || store.Status.Code != 2 {
		t.Errorf("the errors: %+v, %+v", method, store)
	}
	text := body[:strings.Index(body, "scopeSpans")]
	if !strings.Contains(text, `{"key":"service.name","value":{"stringValue":"koine"}}`) || !strings.Contains(text, `{"key":"service.version","value":{"stringValue":"1.2"}}`) {
		t.Errorf("the resource: %s", text)
	}
}

// Outside of a request there are no spans, and a Tracing that is not there does
// nothing.
func TestNoSpans(t *testing.T) {
	c := newCollector(t)
	tr := tracing.New(tracing.Options{Endpoint: c.URL})
	_, end := tr.Span(context.Background(), "kg update")
	end(nil)
	closeTracing(t, tr)
	if len(c.bodies) != 0 {
		t.Errorf("sent %q", c.bodies)
	}
	var none *tracing.Tracing
	r := httptest.NewRequest("GET", "/", nil)
	ctx, finish := none.Request(r, "GET /")
	_, end = none.Span(ctx, "x")
	end(nil)
	finish(200)
	closeTracing(t, none)
}

// A collector that refuses is one line of the log, and holds nothing up.
func TestACollectorThatRefuses(t *testing.T) {
	c := newCollector(t)
	c.status = 500
	var log bytes.Buffer
	tr := tracing.New(tracing.Options{Endpoint: c.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range tracing.MaxBatchSpans*2 + 1 { // three batches
		_, end := tr.Request(httptest.NewRequest("GET", "/", nil), "GET /")
		end(200)
	}
	closeTracing(t, tr)
	if n := strings.Count(log.String(), "not taken by the collector"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
