package httpd

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// Counters are metrics that are counted outside the server, by parts created before it.
// They are safe for concurrent use.
type Counters struct {
	rateLimited *prometheus.CounterVec
	verdicts    *prometheus.CounterVec
	operations  *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	ended       *prometheus.CounterVec
}

// NewCounters returns counters for Options.
func NewCounters() *Counters {
	return &Counters{
		rateLimited: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_rate_limited_total",
			Help: "Requests, updates and streams that were refused by a limit, by what and by whose limit (principal or address)."}, []string{"what", "by"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_verification_verdicts_total",
			Help: "Judgements on updates by their outcome; dry runs, and judgements that had to be made again, included."}, []string{"outcome"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_graphql_operations_total",
			Help: "GraphQL operations that have been executed, or established, by kind and outcome (ok, partial or failed)."}, []string{"kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "koine_graphql_operation_duration_seconds", Buckets: buckets,
			Help: "How long GraphQL operations took by kind; a subscription until it was established."}, []string{"kind"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_streams_ended_total",
			Help: "Streams that the server has ended, by transport and reason."}, []string{"transport", "reason"}),
	}
}

func (c *Counters) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.rateLimited, c.verdicts, c.operations, c.duration, c.ended}
}

// RateLimited counts a refusal by a limit.
func (c *Counters) RateLimited(what, by string) { c.rateLimited.WithLabelValues(what, by).Inc() }

// Operation counts a GraphQL operation (transport.Options).
func (c *Counters) Operation(kind, outcome string, took time.Duration) {
	c.operations.WithLabelValues(kind, outcome).Inc()
	c.duration.WithLabelValues(kind).Observe(took.Seconds())
}

// reasonShutdown is the reason of all streams that are open when the server stops.
const reasonShutdown = "SERVER_SHUTDOWN"

// StreamEnded returns a function that counts and logs the end of a stream (sse.Options). revision
// returns the revision of a position, 0 if it has none.
func (c *Counters) StreamEnded(log *slog.Logger, revision func(position string) kg.Revision) func(context.Context, sse.End) {
	return func(ctx context.Context, e sse.End) {
		c.ended.WithLabelValues(e.Transport, e.Reason).Inc()
		by := caller.From(ctx)
		attrs := []slog.Attr{slog.String("transport", e.Transport), slog.String("reason", e.Reason)}
		for _, known := range []slog.Attr{slog.String("cause", e.Cause), slog.String("request", by.RequestID), slog.String("agent", string(by.Acting())),
			slog.String("method", e.Method), slog.String("position", e.Position)} {
			if known.Value.String() != "" {
				attrs = append(attrs, known)
			}
		}
		if r := revision(e.Position); r > 0 {
			attrs = append(attrs, slog.Uint64("revision", uint64(r)))
		}
		level := slog.LevelInfo
		if e.Reason == reasonShutdown {
			level = slog.LevelDebug // one line for each open stream
		}
		log.LogAttrs(ctx, level, "stream ended", attrs...)
	}
}

// Verifier wraps a verifier to count its verdicts; nil for nil.
func (c *Counters) Verifier(v kg.Verifier) kg.Verifier {
	if v == nil {
		return nil
	}
	return counted{c, v}
}

type counted struct {
	counters *Counters
	kg.Verifier
}

// Idle reports whether the verifier has no rules: the store skips it then, and does not
// read through a replaced graph.
func (v counted) Idle() bool {
	i, ok := v.Verifier.(kg.Idler)
	return ok && i.Idle()
}

var outcomes = map[kg.Outcome]string{kg.Accepted: "accepted", kg.Rejected: "rejected", kg.Violation: "violation", kg.Held: "held"}

// Verify calls the verifier and counts its verdict.
func (v counted) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	verdict, err := v.Verifier.Verify(ctx, j)
	outcome := outcomes[verdict.Outcome]
	if err != nil {
		outcome = "error"
	}
	v.counters.verdicts.WithLabelValues(outcome).Inc()
	return verdict, err
}
