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

// Options of a Tracing. What they leave open the SDK takes from the environment,
// as OpenTelemetry has it: OTEL_EXPORTER_OTLP_HEADERS, …_TIMEOUT, …_COMPRESSION,
// …_CERTIFICATE, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_SERVICE_NAME, OTEL_BSP_….
type Options struct {
	// Endpoint is the address of the collector's OTLP over HTTP, to which
	// /v1/traces is added, such as http://127.0.0.1:4318; "" for that of
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, as it stands.
	Endpoint string
	Version  string
	Logger   *slog.Logger // discards when nil
	// Exporter takes the spans; nil for one that sends them to Endpoint.
	Exporter sdktrace.SpanExporter
}

// Bounds of what waits to be sent, unless OTEL_BSP_… says otherwise. What is more
// is dropped: a collector that is slow or away must not hold requests up.
const (
	MaxQueuedSpans = sdktrace.DefaultMaxQueueSize
	MaxBatchSpans  = sdktrace.DefaultMaxExportBatchSize
	BatchEvery     = sdktrace.DefaultScheduleDelay * time.Millisecond
)

// Tracing makes spans. It is safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New starts to send traces; Close ends it. Which of them are kept is what
// OTEL_TRACES_SAMPLER says, all of them without it. An error says that the options
// or the environment make no sense; a collector that is away is none.
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
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(&teller{SpanExporter: o.Exporter, log: o.Logger}), sdktrace.WithResource(about))
	return &Tracing{provider, provider.Tracer("koine")}, nil
}

// teller says in the log when spans begin and cease to be lost.
type teller struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool // so that a collector that is away is one line
}

// ExportSpans sends a batch. One that cannot be sent is dropped.
func (e *teller) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if was := e.failing.Swap(err != nil); err != nil && !was {
		e.log.Warn("traces are not taken by the collector, and are dropped", "error", err)
	} else if err == nil && was {
		e.log.Info("traces are taken by the collector again")
	}
	return nil // the SDK would only log it once more
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

// Stages is kg.Options.Stages: a span for each stage of an update, with the time
// that it took, inside of the one that the context carries. The group, which
// updates of other requests may share, is named by koine.group.
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

// ForStages is Stages as a function for kg, and nil where t is.
func (t *Tracing) ForStages() func(context.Context, kg.Stages) {
	if t == nil {
		return nil
	}
	return t.Stages
}
