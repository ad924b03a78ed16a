package inboxhook

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/delivery"
	"koine/kg"
)

const (
	DefaultMaxEndpoints = 500
	DefaultPause        = time.Second
	DefaultFlushEvery   = time.Second

	// maxHold is how long a reader of the store is kept while an endpoint is called.
	maxHold = time.Second
)

// Options configures a Service. Endpoint and Body are required.
type Options struct {
	delivery.Options
	// Endpoint returns the URL for messages to an agent, or "".
	Endpoint func(*agents.Record) string
	// Body formats a message for an agent. A nil body means that the agent may no longer
	// read it.
	Body func(context.Context, kg.AgentID, *message.Message) ([]byte, error)
	// MayDeliver reports whether messages may be delivered to an agent now; nil allows all.
	MayDeliver func(kg.AgentID) bool
	// MaxEndpoints is the maximum number of agents with deliveries. Further endpoints get
	// nothing until the next start with room; the log names them.
	MaxEndpoints int
	// Pause is the delay after the first failure. It doubles with each further one, up to
	// delivery.MaxBackoff.
	Pause time.Duration
	// FlushEvery is the interval at which progress is stored.
	FlushEvery time.Duration
	// Logger logs failing and recovered endpoints. It discards if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MayDeliver == nil {
		o.MayDeliver = func(kg.AgentID) bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxEndpoints = cmp.Or(o.MaxEndpoints, DefaultMaxEndpoints)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	o.FlushEvery = cmp.Or(o.FlushEvery, DefaultFlushEvery)
	return o
}
