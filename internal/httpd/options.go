package httpd

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"koine/internal/audit"
	"koine/internal/throttle"
	"koine/internal/tracing"
	"koine/kg"
)

// Streams manages the open event streams (sse.Server).
type Streams interface {
	// Shutdown ends the streams with a reason and waits for them.
	Shutdown(context.Context) error
	Streams() int
}

// Store is the part of kg.Store that the server reports.
type Store interface {
	// Ready returns nil, or the reason for which the store takes no updates.
	Ready() error
	Stats() kg.Stats
}

// Defaults of the Options.
const (
	DefaultHeaderTimeout   = 10 * time.Second
	DefaultStallTimeout    = 30 * time.Second
	DefaultIdleTimeout     = 2 * time.Minute
	DefaultShutdownTimeout = 20 * time.Second
	DefaultMaxHeaderBytes  = 64 << 10
	DefaultMaxRequests     = 4096
	// DefaultMaxReceiving bounds the requests with an incomplete body.
	DefaultMaxReceiving = 16_384
	// DefaultMaxReceivedBytes bounds the received bytes of unanswered requests.
	DefaultMaxReceivedBytes = 256 << 20
	// DefaultMaxScrapes bounds concurrent reads of /metrics.
	DefaultMaxScrapes = 4
	// DefaultMaxDelayed bounds the refusals that wait (Server.DelayRefusals).
	DefaultMaxDelayed = 1024
	DefaultHome       = "playground"
)

// Options configures a Server. Store and Streams are required; other zero values select
// defaults.
type Options struct {
	Store   Store
	Streams Streams
	Logger  *slog.Logger

	// Throttle limits the requests of each caller and address; nil for no limit.
	Throttle *throttle.Throttle
	// TrustedProxies are the proxies with a trustworthy X-Forwarded-For.
	TrustedProxies []netip.Prefix

	// Counters are additional metrics of /metrics; nil creates new ones.
	Counters *Counters
	// Build labels the metric koine_build_info; nil omits it.
	Build map[string]string
	// TextIndex returns how far the index of texts is; nil for none.
	TextIndex func() TextIndex
	// Embeddings returns how many texts have vectors and how many wait; nil for none.
	Embeddings func() Embeddings
	// Trail records refusals; nil for none.
	Trail *audit.Trail
	// Tracing creates spans for requests; nil for none.
	Tracing *tracing.Tracing
	// Certificate enables TLS; nil for plain HTTP.
	Certificate *Certificate

	// AllowOrigins are the origins whose pages may use the server, as ParseOrigins
	// returns them. Open mode ignores them.
	AllowOrigins []string
	// PublicOrigin is the server's origin as clients see it, if it differs from the
	// Host header; "" for none.
	PublicOrigin string

	// Admit authenticates callers by their credential. Nil is open mode: callers name
	// themselves and are administrators.
	Admit Admit
	// ResourceMetadata returns the URL of the OAuth metadata that a 401 answer to the request
	// names, "" for none; nil names none.
	ResourceMetadata func(*http.Request) string
	// CheckAgent returns an error for an id in X-Agent-ID that is not a permitted agent
	// (kg.Store.CheckAgent); nil permits all valid ids.
	CheckAgent func(context.Context, kg.AgentID) error
	// Insecure lets open mode answer under any host name, as Listen lets it bind to any
	// address. Foreign origins stay refused.
	Insecure bool
	// Home is the address, relative to /, to which browsers are redirected from /.
	Home string

	// HeaderTimeout is the time limit of a request's header.
	HeaderTimeout time.Duration
	// StallTimeout is the longest time without progress of a request's body or answer.
	// Streams have limits of their own.
	StallTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// ShutdownTimeout is the time limit for ending streams and requests in progress.
	ShutdownTimeout time.Duration
	MaxHeaderBytes  int
	// MaxRequests bounds the requests in progress, without open streams; MaxReceiving
	// those with an incomplete body. Of these, of MaxConnections and of the bytes
	// of Intake, a caller may have half of the free places (throttle.Pool).
	MaxRequests, MaxReceiving int
	// MaxConnections bounds the open connections. 0 derives it from the limit of open
	// files.
	MaxConnections int
	// Intake limits the received bytes of unanswered requests, and the slowness of
	// bodies that are not uploads.
	Intake throttle.Intake
}

func (o Options) withDefaults() Options {
	o.Home = cmp.Or(o.Home, DefaultHome)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, DefaultHeaderTimeout)
	o.StallTimeout = cmp.Or(o.StallTimeout, DefaultStallTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, DefaultMaxHeaderBytes)
	o.MaxRequests = cmp.Or(o.MaxRequests, DefaultMaxRequests)
	o.MaxReceiving = cmp.Or(o.MaxReceiving, DefaultMaxReceiving)
	if o.Intake.Pool == nil {
		o.Intake.Pool = throttle.NewPool(DefaultMaxReceivedBytes)
	}
	o.Intake.Grace = cmp.Or(o.Intake.Grace, throttle.DefaultGrace)
	o.Intake.BytesPerSecond = cmp.Or(o.Intake.BytesPerSecond, throttle.DefaultBytesPerSecond)
	if o.Counters == nil {
		o.Counters = NewCounters()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
