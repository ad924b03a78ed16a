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

	"koine/kg"
)

// metrics are the server's numbers, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	callTook *prometheus.HistogramVec
}

// buckets reach from a cached query to a large import, in seconds.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_http_requests_total",
			Help: "HTTP requests that have ended, by route, method and status."}, []string{"route", "method", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "koine_http_request_duration_seconds", Buckets: buckets,
			Help: "How long HTTP requests took, by route; streams are not counted."}, []string{"route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "koine_rpc_calls_total",
			Help: "JSON-RPC calls that have ended, by method and error code (0 for none)."}, []string{"method", "code"}),
		callTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "koine_rpc_call_duration_seconds", Buckets: buckets,
			Help: "How long JSON-RPC calls took, by method; a stream's call lasts as long as the stream."}, []string{"method"}),
	}
	m.registry.MustRegister(m.requests, m.took, m.calls, m.callTook,
		gauge("koine_http_requests_under_way", "HTTP requests under way, open streams not counted.", func() float64 { return float64(s.underWay.Load()) }),
		gauge("koine_streams", "Open event streams and sockets.", func() float64 { return float64(s.options.Streams.Streams()) }),
		storeCollector{s.options.Store}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if c := s.options.Certificate; c != nil {
		m.registry.MustRegister(gauge("koine_tls_certificate_not_after_seconds", "Until when the certificate in use is valid, as Unix time.",
			func() float64 { return float64(c.NotAfter().Unix()) }))
	}
	return m
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

func (m *metrics) request(r *http.Request, status int, took time.Duration, stream bool) {
	route := routeLabel(r.Pattern)
	m.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Inc()
	if !stream {
		m.took.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *metrics) call(method string, code int, took time.Duration) {
	m.calls.WithLabelValues(method, strconv.Itoa(code)).Inc()
	m.callTook.WithLabelValues(method).Observe(took.Seconds())
}

// routeLabel is the path of a route's pattern: "GET /healthz" is "/healthz",
// and "/{$}", which is the root and nothing below it, is "/".
func routeLabel(pattern string) string {
	if pattern == "" || pattern == "/" {
		return "none" // refused, or nothing there
	}
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	return strings.TrimSuffix(pattern, "{$}")
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// methodLabel keeps clients from making up labels.
func methodLabel(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// storeCollector gives the store's numbers as of one moment.
type storeCollector struct{ store Store }

type storeNumber struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(kg.Stats) float64
}

func storeGauge(name, help string, value func(kg.Stats) float64) storeNumber {
	return storeNumber{prometheus.NewDesc("koine_store_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

func storeCounter(name, help string, value func(kg.Stats) float64) storeNumber {
	return storeNumber{prometheus.NewDesc("koine_store_"+name, help, nil, nil), prometheus.CounterValue, value}
}

var storeNumbers = []storeNumber{
	storeGauge("revision", "The newest revision.", func(s kg.Stats) float64 { return float64(s.Revision) }),
	storeGauge("statements", "Statements in all graphs.", func(s kg.Stats) float64 { return float64(s.Statements) }),
	storeGauge("terms", "Terms in the dictionary.", func(s kg.Stats) float64 { return float64(s.Terms) }),
	storeGauge("log_bytes", "Used bytes of the log.", func(s kg.Stats) float64 { return float64(s.LogBytes) }),
	storeGauge("index_bytes", "Bytes of the index.", func(s kg.Stats) float64 { return float64(s.IndexBytes) }),
	storeGauge("queue_length", "Updates that wait for the committer.", func(s kg.Stats) float64 { return float64(s.QueueLength) }),
	storeGauge("watchers", "Registered watchers.", func(s kg.Stats) float64 { return float64(s.Watchers) }),
	storeGauge("snapshots", "Open snapshots.", func(s kg.Stats) float64 { return float64(s.Snapshots) }),
	storeCounter("term_cache_hits_total", "Terms found in the cache.", func(s kg.Stats) float64 { return float64(s.CacheHits) }),
	storeCounter("term_cache_misses_total", "Terms looked up in the index.", func(s kg.Stats) float64 { return float64(s.CacheMisses) }),
}

// Describe is for the registry.
func (c storeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, n := range storeNumbers {
		to <- n.desc
	}
}

// Collect is for the registry.
func (c storeCollector) Collect(to chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, n := range storeNumbers {
		to <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(stats))
	}
}
