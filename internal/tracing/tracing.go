package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"koine/kg"
)

// Options configures a Tracing. The SDK reads all other settings from OpenTelemetry's environment
// variables: OTEL_EXPORTER_OTLP_HEADERS, …_TIMEOUT, …_COMPRESSION, …_CERTIFICATE,
// OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, OTEL_BSP_….
type Options struct {
	// Endpoint is the address of the collector for OTLP over HTTP, without /v1/traces, such as
	// http://127.0.0.1:4318; "" means OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used
	// unchanged.
	Endpoint string
	Version  string
	Logger   *slog.Logger // nil discards
	// Exporter receives the spans; nil means an exporter to Endpoint.
	Exporter sdktrace.SpanExporter
}

// Limits of the export queue, unless OTEL_BSP_… sets others. Excess spans are dropped: a slow or
// unreachable collector must not delay requests.
const (
	MaxQueuedSpans = sdktrace.DefaultMaxQueueSize
	MaxBatchSpans  = sdktrace.DefaultMaxExportBatchSize
	BatchEvery     = sdktrace.DefaultScheduleDelay * time.Millisecond
)

// Tracing creates spans. It is safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New starts exporting traces; Close stops it. OTEL_TRACES_SAMPLER selects traces;
// without it all are exported. The error reports invalid options or environment; an
// unreachable collector is not an error.
func New(ctx context.Context, o Options) (*Tracing, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Exporter == nil {
		var at []otlptracehttp.Option
		if o.Endpoint != "" {
			at = append(at, otlptracehttp.WithEndpointURL(strings.TrimRight(o.Endpoint, "/")+"/v1/traces"))
		}
		exporter, err := otlptracehttp.New(ctx, at...)
		if err != nil {
			return nil, err
		}
		o.Exporter = exporter
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "koine"), attribute.String("service.version", o.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(&exportLogger{SpanExporter: o.Exporter, log: o.Logger}), sdktrace.WithResource(about))
	return &Tracing{provider, provider.Tracer("koine")}, nil
}

// exportLogger logs when spans begin and cease to be lost.
type exportLogger struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool // so that an unreachable collector is logged once
}

// ExportSpans sends a batch. It drops a batch that it cannot send.
func (e *exportLogger) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if was := e.failing.Swap(err != nil); err != nil && !was {
		e.log.Warn("the collector rejects traces: they are dropped", "error", err)
	} else if err == nil && was {
		e.log.Info("the collector accepts traces again")
	}
	return nil // the SDK would log it again
}

// Close sends the queued spans until ctx is done.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

var traceContext propagation.TraceContext

// Request starts the span of a request, as a child of its traceparent if present. end
// must be called once, with the status of the response.
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

// Span starts a child of the span in the context. end must be called once, with the
// resulting error; only its code is recorded.
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

// Begin returns Span as a function, nil for a nil Tracing, so that callers pay nothing
// without tracing.
func (t *Tracing) Begin() func(context.Context, string) (context.Context, func(error)) {
	if t == nil {
		return nil
	}
	return t.Span
}

// Stages implements kg.Governor.Stages: it adds a span for each stage of an update to the
// span in the context. koine.group identifies the commit group, which updates of other
// requests may share.
func (t *Tracing) Stages(ctx context.Context, s kg.Stages) {
	if t == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	group := trace.WithAttributes(attribute.Int64("koine.group", int64(s.Group)), attribute.Int("koine.group.commits", s.Commits))
	for _, stage := range []struct {
		name     string
		from, to time.Time
	}{{"kg queue", s.Queued, s.Taken}, {"kg execute", s.Taken, s.Executed}, {"kg append", s.Executed, s.Appended}, {"kg apply", s.Appended, s.Applied}} {
		_, span := t.tracer.Start(ctx, stage.name, trace.WithTimestamp(stage.from), group)
		span.End(trace.WithTimestamp(stage.to))
	}
}

// ForStages returns Stages as a function, nil for a nil Tracing.
func (t *Tracing) ForStages() func(context.Context, kg.Stages) {
	if t == nil {
		return nil
	}
	return t.Stages
}
