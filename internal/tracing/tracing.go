package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"koine/kg"
)

// Options of a Tracing.
type Options struct {
	// Endpoint is the address of the collector's OTLP over HTTP, to which
	// /v1/traces is added, such as http://127.0.0.1:4318.
	Endpoint string
	// Headers go with each request to it, for its credentials.
	Headers map[string]string
	Service string // "koine" if empty
	Version string
	Logger  *slog.Logger // discards when nil
	// Client sends; nil means one with SendTimeout.
	Client *http.Client
}

// Bounds of what waits to be sent. What is more is dropped: a collector that is
// slow or away must not hold requests up.
const (
	MaxQueuedSpans = 2048
	MaxBatchSpans  = 512
	BatchEvery     = 5 * time.Second
	SendTimeout    = 10 * time.Second
)

// Tracing makes spans. It is safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New starts to send traces; Close ends it. Which of them are kept is what
// OTEL_TRACES_SAMPLER says, all of them without it.
func New(o Options) *Tracing {
	if o.Service == "" {
		o.Service = "koine"
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(newExporter(o), sdktrace.WithMaxQueueSize(MaxQueuedSpans), sdktrace.WithMaxExportBatchSize(MaxBatchSpans), sdktrace.WithBatchTimeout(BatchEvery)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))),
	)
	return &Tracing{provider, provider.Tracer("koine")}
}

// Close sends what waits, for as long as ctx lets it.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

var traceContext propagation.TraceContext

// Request begins the span of a request, below that of its traceparent if it has
// one. end is called once, with the status of the answer.
func (t *Tracing) Request(r *http.Request, route string) (ctx context.Context, end func(status int)) {
	ctx = r.Context()
	if t == nil {
		return ctx, func(int) {}
	}
	ctx, span := t.tracer.Start(traceContext.Extract(ctx, propagation.HeaderCarrier(r.Header)), "HTTP "+route,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.route", route)))
	return ctx, func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// Span begins a span inside of the one that the context carries. end is called
// once, with the error that it ended with; of that only the code is told.
func (t *Tracing) Span(ctx context.Context, name string) (inner context.Context, end func(error)) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			code := string(kg.CodeOf(err))
			span.SetAttributes(attribute.String("koine.code", code))
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}

// Begin is Span as a function for others to call, and nil where t is: what is
// not traced then costs nothing.
func (t *Tracing) Begin() func(context.Context, string) (context.Context, func(error)) {
	if t == nil {
		return nil
	}
	return t.Span
}
