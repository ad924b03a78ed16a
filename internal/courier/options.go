package courier

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

const (
	// MaxTries is how often a letter is tried before others may pass it.
	MaxTries = 6

	DefaultMaxHooks   = 10_000
	DefaultPause      = time.Second
	DefaultFlushEvery = time.Second

	// watchPause is how long it is before the log is followed again that could not be.
	watchPause = time.Second
)

// Options of a Service. Body is required.
type Options struct {
	webhook.Options
	// Body writes a letter.
	Body func(*tasks.Letter) ([]byte, error)
	// MayDeliver tells whether an agent may be told of its letters now; nil says so of all.
	MayDeliver func(kg.AgentID) bool
	// MaxHooks is how many agents have a hook; one more is refused.
	MaxHooks int
	// Pause is how long a hook is left alone that failed once; twice as long with each
	// try that fails behind it, up to webhook.MaxPause.
	Pause time.Duration
	// FlushEvery is how often it is written down how far hooks came.
	FlushEvery time.Duration
	// Logger is told of hooks that fail, and that work again. Nil is told nothing.
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
