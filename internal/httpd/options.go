package httpd

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"koine/internal/audit"
	"koine/internal/throttle"
	"koine/internal/tracing"
	"koine/kg"
)

// Streams are the open event streams (sse.Server).
type Streams interface {
	// Shutdown ends them with their reason and waits for them.
	Shutdown(context.Context) error
	Streams() int
}

// Store is what the server reports of the store (kg.Store).
type Store interface {
	// Ready is nil, or says why no updates are taken.
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
	// DefaultMaxReceiving bounds the requests whose body is still on its way.
	DefaultMaxReceiving = 16_384
	// DefaultMaxReceivedBytes bounds what was received and is not answered yet.
	DefaultMaxReceivedBytes = 256 << 20
	// DefaultMaxScrapes bounds the reads of /metrics at a time.
	DefaultMaxScrapes = 4
	DefaultHome       = "playground"
)

// Options of a Server. Store and Streams are required; the zero value of each
// other means its default.
type Options struct {
	Store   Store
	Streams Streams
	Logger  *slog.Logger

	// Throttle bounds what one caller and one address can ask for; nil bounds
	// nothing.
	Throttle *throttle.Throttle
	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	// Counters are those that /metrics has beside the server's own; nil makes new
	// ones.
	Counters *Counters
	// Build labels the metric koine_build_info; nil leaves it out.
	Build map[string]string
	// Trail is told of what the server refuses; nil for none.
	Trail *audit.Trail
	// Tracing makes spans of requests; nil for none.
	Tracing *tracing.Tracing
	// Certificate makes the server speak TLS; nil leaves it at plain HTTP.
	Certificate *Certificate

	// AllowOrigins are the origins whose pages may use the server, as ParseOrigins
	// gives them. In open mode none is let in.
	AllowOrigins []string
	// PublicOrigin is the origin under which clients know the server, where it is
	// not the host that they ask for; "" for none.
	PublicOrigin string

	// Admit lets callers in by their credential. Nil is open mode: the caller says
	// who it is, and may do everything.
	Admit Admit
	// CheckAgent refuses ids in X-Agent-ID that no agent may have (kg.Store.CheckAgent);
	// nil takes all that are valid.
	CheckAgent func(context.Context, kg.AgentID) error
	// Insecure lets open mode answer under any host name, as Listen lets it
	// bind to any address. Foreign origins stay refused.
	Insecure bool
	// Home is where a browser is sent that asks for /, relative to it.
	Home string

	// HeaderTimeout bounds how long a request's header may take.
	HeaderTimeout time.Duration
	// StallTimeout bounds how long a request's body or its answer may make no
	// progress. Streams have bounds of their own.
	StallTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// ShutdownTimeout bounds how long the streams, and then the requests that
	// are under way, may take to end.
	ShutdownTimeout time.Duration
	MaxHeaderBytes  int
	// MaxRequests bounds the requests that are under way at a time, open
	// streams not counted, MaxReceiving those before them whose body is still on its
	// way. Of these, of MaxConnections and of the Intake's bytes a caller may have
	// half of what the others leave (throttle.Pool).
	MaxRequests, MaxReceiving int
	// MaxConnections bounds the open connections. 0 goes by how many files the
	// process may have open.
	MaxConnections int
	// Intake bounds the bytes that were received and are not answered yet, and how
	// slowly a body may come that is not an upload.
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
