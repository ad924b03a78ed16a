package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"koine/internal/tracing"
	"koine/kg"
)

// collector keeps the spans that it receives.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	paths  []string
	header http.Header
	status int
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: 200}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies, c.paths, c.header = append(c.bodies, body), append(c.paths, r.Method+" "+r.URL.Path), r.Header
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

// decoded is all that was sent.
func (c *collector) decoded(t *testing.T) (all []*tracepb.ResourceSpans) {
	t.Helper()
	for _, body := range c.bodies {
		var r collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r.ResourceSpans...)
	}
	return all
}

func attribute(list []*commonpb.KeyValue, key string) any {
	for _, a := range list {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			return v.StringValue
		case *commonpb.AnyValue_IntValue:
			return int(v.IntValue)
		}
	}
	return nil
}

func start(t *testing.T, o tracing.Options) *tracing.Tracing {
	t.Helper()
	tr, err := tracing.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func closeTracing(t *testing.T, tr *tracing.Tracing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A request's span is a child of its traceparent, and its parts are children of it; the
// collector gets them as OTLP, with the settings of the environment.
func TestSpans(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Token=t%201")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
	t.Setenv("OTEL_SERVICE_NAME", "memory")
	c := newCollector(t)
	tr := start(t, tracing.Options{Endpoint: c.URL + "/", Version: "1.2"})
	r := httptest.NewRequest("POST", "/a2a", nil)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, end := tr.Request(r, "POST /a2a")
	inner, done := tr.Span(ctx, "knowledge/update")
	_, stored := tr.Span(inner, "kg update")
	stored(kg.Errorf(kg.CodeReserved, "secret text"))
	done(errors.New("secret text"))
	end(503)
	closeTracing(t, tr)
	if len(c.bodies) != 1 || c.paths[0] != "POST /v1/traces" || c.header.Get("X-Token") != "t 1" || c.header.Get("Content-Type") != "application/x-protobuf" {
		t.Fatalf("got %q with %v", c.paths, c.header)
	}
	if bytes.Contains(c.bodies[0], []byte("secret")) {
		t.Errorf("the text of an error was sent: %q", c.bodies[0])
	}
	got := c.decoded(t)[0]
	for key, want := range map[string]string{"service.name": "memory", "service.version": "1.2", "deployment.environment": "lab"} {
		if text := attribute(got.Resource.Attributes, key); text != want {
			t.Errorf("%s of the resource: got %v, want %s", key, text, want)
		}
	}
	spans := map[string]*tracepb.Span{}
	for _, s := range got.ScopeSpans[0].Spans {
		spans[s.Name] = s
		if hex.EncodeToString(s.TraceId) != "0af7651916cd43dd8448eb211c80319c" || len(s.SpanId) != 8 || s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("got %v", s)
		}
	}
	request, method, store := spans["HTTP POST /a2a"], spans["knowledge/update"], spans["kg update"]
	if request == nil || method == nil || store == nil {
		t.Fatalf("got %v", spans)
	}
	if hex.EncodeToString(request.ParentSpanId) != "b7ad6b7169203331" || !bytes.Equal(method.ParentSpanId, request.SpanId) || !bytes.Equal(store.ParentSpanId, method.SpanId) {
		t.Errorf("not below each other: %v", spans)
	}
	if request.Kind != tracepb.Span_SPAN_KIND_SERVER || method.Kind != tracepb.Span_SPAN_KIND_INTERNAL || attribute(request.Attributes, "http.route") != "POST /a2a" ||
		attribute(request.Attributes, "http.response.status_code") != 503 || request.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("the request: %v", request)
	}
	if attribute(method.Attributes, "koine.code") != "INTERNAL" || attribute(store.Attributes, "koine.code") != "RESERVED" || store.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("the errors: %v, %v", method, store)
	}
}

// Spans that are not sampled are not kept: by the environment, or by the caller.
func TestSampling(t *testing.T) {
	for _, row := range []struct {
		name, sampler, parent string
		want                  int
	}{
		{"all", "", "", 1},
		{"none", "always_off", "", 0},
		{"the caller's choice not to", "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 0},
		{"the caller's choice to", "parentbased_always_off", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1},
		{"a header that is none", "", "00-xyz", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.sampler != "" {
				t.Setenv("OTEL_TRACES_SAMPLER", row.sampler)
			}
			kept := &keeper{InMemoryExporter: tracetest.NewInMemoryExporter()}
			tr := start(t, tracing.Options{Exporter: kept})
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("traceparent", row.parent)
			_, end := tr.Request(r, "GET /")
			end(200)
			closeTracing(t, tr)
			if len(kept.spans) != row.want {
				t.Errorf("%d spans, want %d", len(kept.spans), row.want)
			}
		})
	}
}

// keeper is an exporter in memory that keeps its spans when it is shut down.
type keeper struct {
	*tracetest.InMemoryExporter
	spans tracetest.SpanStubs
}

func (k *keeper) Shutdown(ctx context.Context) error {
	k.spans = k.GetSpans()
	return k.InMemoryExporter.Shutdown(ctx)
}

// Outside of a request there are no spans, and a Tracing that is not there does
// nothing, and costs nothing.
func TestNoSpans(t *testing.T) {
	c := newCollector(t)
	tr := start(t, tracing.Options{Endpoint: c.URL})
	_, end := tr.Span(context.Background(), "kg update")
	end(nil)
	closeTracing(t, tr)
	if len(c.bodies) != 0 {
		t.Errorf("sent %q", c.bodies)
	}
	var none *tracing.Tracing
	if none.Begin() != nil {
		t.Error("others are given a function that does nothing")
	}
	r := httptest.NewRequest("GET", "/", nil)
	if n := testing.AllocsPerRun(100, func() {
		ctx, finish := none.Request(r, "GET /")
		_, end := none.Span(ctx, "x")
		end(nil)
		finish(200)
	}); n != 0 {
		t.Errorf("%v allocations where nothing is traced", n)
	}
	closeTracing(t, none)
}

// A collector that refuses is one line of the log, and holds nothing up.
func TestACollectorThatRefuses(t *testing.T) {
	c := newCollector(t)
	c.status = 400
	var log bytes.Buffer
	tr := start(t, tracing.Options{Endpoint: c.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range tracing.MaxBatchSpans*2 + 1 { // three batches
		_, end := tr.Request(httptest.NewRequest("GET", "/", nil), "GET /")
		end(200)
	}
	closeTracing(t, tr)
	if n := strings.Count(log.String(), "the collector rejects traces"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// Spans that wait past the bound are dropped, and a close that may not wait any
// longer gives up.
func TestTheQueueIsBounded(t *testing.T) {
	stuck := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
	tr := start(t, tracing.Options{Exporter: stuck})
	request := func() {
		_, end := tr.Request(httptest.NewRequest("GET", "/", nil), "GET /")
		end(200)
	}
	for range tracing.MaxBatchSpans {
		request()
	}
	<-stuck.entered // with the first batch, and stays there
	for range tracing.MaxQueuedSpans + 1000 {
		request() // does not wait
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tr.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a close that may not wait: %v", err)
	}
	close(stuck.free)
	stuck.mu.Lock()
	defer stuck.mu.Unlock()
	if most := tracing.MaxBatchSpans + tracing.MaxQueuedSpans; stuck.spans > most {
		t.Errorf("%d spans, want %d at most", stuck.spans, most)
	}
}
