package mailhook

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/delivery"
	"koine/internal/tasks"
	"koine/kg"
)

const (
	// MaxTries is the number of attempts after which letters of other tasks may pass a
	// letter.
	MaxTries = 6

	DefaultMaxHooks   = 10_000
	DefaultPause      = time.Second
	DefaultFlushEvery = time.Second
)

// Options configures a Service. Body is required.
type Options struct {
	delivery.Options
	// Body formats a letter.
	Body func(*tasks.Letter) ([]byte, error)
	// MayDeliver reports whether letters may be delivered to an agent now; nil allows
	// all.
	MayDeliver func(kg.AgentID) bool
	// MaxHooks is the maximum number of agents with a hook.
	MaxHooks int
	// Pause is the delay after the first failure. It doubles with each further one, up
	// to delivery.MaxBackoff.
	Pause time.Duration
	// FlushEvery is the interval at which progress is stored.
	FlushEvery time.Duration
	// Logger logs failing and recovered hooks. It discards if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MayDeliver == nil {
		o.MayDeliver = func(kg.AgentID) bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxHooks = cmp.Or(o.MaxHooks, DefaultMaxHooks)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	o.FlushEvery = cmp.Or(o.FlushEvery, DefaultFlushEvery)
	return o
}
