package httpd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"koine/kg"
)

// Counters are metrics that are counted outside the server, by parts created before it.
// They are safe for concurrent use.
type Counters struct {
	rateLimited *prometheus.CounterVec
	verdicts    *prometheus.CounterVec
	operations  *prometheus.CounterVec
	duration    *prometheus.HistogramVec
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
	}
}

func (c *Counters) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.rateLimited, c.verdicts, c.operations, c.duration}
}

// RateLimited counts a refusal by a limit.
func (c *Counters) RateLimited(what, by string) { c.rateLimited.WithLabelValues(what, by).Inc() }

// Operation counts a GraphQL operation (transport.Options).
func (c *Counters) Operation(kind, outcome string, took time.Duration) {
	c.operations.WithLabelValues(kind, outcome).Inc()
	c.duration.WithLabelValues(kind).Observe(took.Seconds())
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
