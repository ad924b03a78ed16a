package httpd

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the server's metrics, in a registry of their own.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	calls        *prometheus.CounterVec
	callDuration *prometheus.HistogramVec
	refused      *prometheus.CounterVec
}

// buckets range from a cached query to a large import, in seconds.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_http_requests_total",
			Help: "HTTP requests that have ended, by route, method and status."}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "koine_http_request_duration_seconds", Buckets: buckets,
			Help: "How long HTTP requests took, by route; streams are not counted."}, []string{"route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_rpc_calls_total",
			Help: "JSON-RPC calls that have ended, by method and error code (0 for none); of a stream the code of its last event."}, []string{"method", "code"}),
		callDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "koine_rpc_call_duration_seconds", Buckets: buckets,
			Help: "How long JSON-RPC calls took, by method; a stream's call lasts as long as the stream."}, []string{"method"}),
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_http_refused_total",
		Help: "HTTP requests that the server refused before their handler, by reason; UNAUTHENTICATED are failed authentications."}, []string{"reason"})
	m.registry.MustRegister(s.options.Counters.collectors()...)
	m.registry.MustRegister(m.requests, m.duration, m.calls, m.callDuration, m.refused,
		newGauge("koine_http_requests_under_way", "HTTP requests under way, open streams not counted.", func() float64 { return float64(s.requests.InUse() + s.scrapes.InUse()) }),
		newGauge("koine_http_bytes_received", "Bytes of bodies and messages that were received and are not answered yet.", func() float64 { return float64(s.intake.Pool.InUse()) }),
		newGauge("koine_http_connections", "Open connections.", func() float64 { return float64(s.conns.pool.InUse()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "koine_audit_unwritten_total", Help: "Refusals that are in the audit list and were not written to the data directory: too many at a time, or a file that cannot be written."},
			func() float64 { return float64(s.options.Trail.Unwritten()) }),
		newGauge("koine_streams", "Open event streams and sockets.", func() float64 { return float64(s.options.Streams.Streams()) }),
		storeCollector{s.options.Store}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.options.Build != nil {
		info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "koine_build_info", Help: "What the binary was built from; always 1.", ConstLabels: s.options.Build})
		info.Set(1)
		m.registry.MustRegister(info)
	}
	if state := s.options.TextIndex; state != nil {
		m.registry.MustRegister(stateCollector[TextIndex]{state, textIndexNumbers})
	}
	if state := s.options.Embeddings; state != nil {
		m.registry.MustRegister(stateCollector[Embeddings]{state, embeddingNumbers})
	}
	if c := s.options.Certificate; c != nil {
		m.registry.MustRegister(newGauge("koine_tls_certificate_not_after_seconds", "Until when the certificate in use is valid, as Unix time.",
			func() float64 { return float64(c.NotAfter().Unix()) }))
	}
	return m
}

func newGauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) countRequest(a answer, took time.Duration) {
	route := routeLabel(a.pattern)
	m.requests.WithLabelValues(route, methodLabel(a.method), strconv.Itoa(a.status)).Inc()
	if !a.stream {
		m.duration.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *metrics) countCall(method string, code int, took time.Duration) {
	m.calls.WithLabelValues(method, strconv.Itoa(code)).Inc()
	m.callDuration.WithLabelValues(method).Observe(took.Seconds())
}

// routeLabel returns the path of a route's pattern: "GET /healthz" is "/healthz", and
// "/{$}" is "/".
func routeLabel(pattern string) string {
	if pattern == "" || pattern == "/" {
		return "none" // refused, or no route
	}
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	return strings.TrimSuffix(pattern, "{$}")
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// methodLabel keeps clients from creating labels.
func methodLabel(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}
