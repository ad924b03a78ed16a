package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans as OTLP/HTTP with JSON (OpenTelemetry protocol 1.x,
// section "JSON Protobuf Encoding": ids in hexadecimal, 64-bit numbers as text).
type exporter struct {
	url     string
	headers map[string]string
	client  *http.Client
	log     *slog.Logger
	failing atomic.Bool // so that a collector that is away is one line
}

func newExporter(o Options) *exporter {
	e := &exporter{url: strings.TrimRight(o.Endpoint, "/") + "/v1/traces", headers: o.Headers, client: o.Client, log: o.Logger}
	if e.client == nil {
		e.client = &http.Client{Timeout: SendTimeout}
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	return e
}

// ExportSpans sends a batch. One that cannot be sent is dropped.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.send(ctx, spans)
	if was := e.failing.Swap(err != nil); err != nil && !was {
		e.log.Warn("traces are not taken by the collector, and are dropped", "error", err)
	} else if err == nil && was {
		e.log.Info("traces are taken by the collector again")
	}
	return nil // the SDK would only log it once more
}

// Shutdown has nothing to close.
func (e *exporter) Shutdown(context.Context) error { return nil }

func (e *exporter) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range e.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", response.Status)
	}
	return nil
}

type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		TraceState string          `json:"traceState,omitempty"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
	}
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// encode writes spans of one provider, which share their resource.
func encode(spans []sdktrace.ReadOnlySpan) otlpRequest {
	scope := otlpScopeSpans{Scope: otlpScope{"koine"}}
	var resource otlpResource
	for _, s := range spans {
		resource.Attributes = attributes(s.Resource().Attributes())
		out := otlpSpan{
			TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), TraceState: s.SpanContext().TraceState().String(),
			Name: s.Name(), Kind: int(s.SpanKind()), // the SDK's numbers are those of OTLP
			Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10),
			Attributes: attributes(s.Attributes()),
		}
		if s.Parent().SpanID().IsValid() {
			out.ParentID = s.Parent().SpanID().String()
		}
		if s.Status().Code == codes.Error {
			out.Status = &otlpStatus{statusError, s.Status().Description}
		}
		scope.Spans = append(scope.Spans, out)
	}
	return otlpRequest{[]otlpResourceSpans{{resource, []otlpScopeSpans{scope}}}}
}

func attributes(list []attribute.KeyValue) (out []otlpAttribute) {
	for _, kv := range list {
		a := otlpAttribute{Key: string(kv.Key)}
		text := kv.Value.String()
		if kv.Value.Type() == attribute.INT64 {
			a.Value.Int = &text
		} else {
			a.Value.String = &text
		}
		out = append(out, a)
	}
	return out
}
