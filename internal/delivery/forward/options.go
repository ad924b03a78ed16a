package forward

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/backoff"
	"koine/internal/delivery"
	"koine/kg"
)

// Bounds.
const (
	// MaxHops is the number of servers that may forward a message.
	MaxHops = 8

	DefaultMaxUpstreams     = 10_000
	DefaultMaxCalls         = 256 // under way in all
	DefaultMaxCallsPerAgent = 8
	DefaultMaxAnswerBytes   = 8 << 20
	DefaultMaxEventBytes    = 1 << 20
	DefaultMaxEvents        = 100_000          // of one call
	DefaultConnectTimeout   = 10 * time.Second // also of TLS
	DefaultIdleTimeout      = 5 * time.Minute  // of a stream
	DefaultCallTimeout      = time.Hour
	// DefaultMaxAway is how long an upstream may fail before its task does.
	DefaultMaxAway = time.Hour
	// DefaultSweepEvery is how often links of ended tasks are removed, MaxSwept at a time.
	DefaultSweepEvery = time.Hour
	MaxSwept          = 1000
)

var (
	defaultRetry = backoff.Waits{Min: time.Second, Max: delivery.MaxBackoff}
	defaultPoll  = backoff.Waits{Min: 500 * time.Millisecond, Max: 10 * time.Second}
)

// Options configures a Service. Wire is required.
type Options struct {
	// AllowPrivate permits upstreams at private and loopback addresses.
	AllowPrivate bool
	Wire         Wire
	// MayForward reports whether messages may be forwarded to an agent now; nil allows all.
	MayForward func(kg.AgentID) bool
	// MaxUpstreams is the number of agents with an upstream.
	MaxUpstreams int
	// MaxCalls and MaxCallsPerAgent bound the calls under way. An agent gets at most half of
	// the calls that the others leave.
	MaxCalls, MaxCallsPerAgent int
	// MaxAnswerBytes bounds the body of an answer, MaxEventBytes an event of a stream, and
	// MaxEvents their number in one call.
	MaxAnswerBytes, MaxEventBytes, MaxEvents int
	// ConnectTimeout bounds connecting, IdleTimeout the silence of a stream, and
	// CallTimeout a whole call. A task continues after them, by another call.
	ConnectTimeout, IdleTimeout, CallTimeout time.Duration
	MaxAway, SweepEvery                      time.Duration
	// Retry are the waits after failures, Poll those between two GetTask.
	Retry, Poll backoff.Waits
	// Logger logs failing and recovered upstreams. It discards if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MayForward == nil {
		o.MayForward = func(kg.AgentID) bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxUpstreams = cmp.Or(o.MaxUpstreams, DefaultMaxUpstreams)
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.MaxCallsPerAgent = cmp.Or(o.MaxCallsPerAgent, DefaultMaxCallsPerAgent)
	o.MaxAnswerBytes = cmp.Or(o.MaxAnswerBytes, DefaultMaxAnswerBytes)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, DefaultMaxEventBytes)
	o.MaxEvents = cmp.Or(o.MaxEvents, DefaultMaxEvents)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	o.MaxAway = cmp.Or(o.MaxAway, DefaultMaxAway)
	o.SweepEvery = cmp.Or(o.SweepEvery, DefaultSweepEvery)
	o.Retry = cmp.Or(o.Retry, defaultRetry)
	o.Poll = cmp.Or(o.Poll, defaultPoll)
	return o
}
