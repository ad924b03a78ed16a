package push

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/delivery"
	"koine/internal/tasks"
	"koine/kg"
)

// Limits of delivery.
const (
	// MaxPending is the maximum number of queued commits per hook.
	MaxPending = 1000
	// MaxTries is the maximum number of attempts per notification.
	MaxTries = 6

	DefaultMaxActive  = 10_000
	DefaultPause      = time.Second
	DefaultFlushEvery = time.Second
)

// Options configures a Service. Body is required.
type Options struct {
	delivery.Options
	// Body formats an event in a form (Config.Form). t is the present task, or nil if
	// WantsFullTask is false for the form; then only its id and context are set. A nil
	// e requests the whole of t, because the log no longer has the events.
	Body func(form string, t *tasks.Task, e *tasks.Event) ([]byte, error)
	// WantsFullTask reports whether a form shows the present task, so that each commit
	// is delivered once.
	WantsFullTask func(form string) bool
	// MayDeliver reports whether events may be delivered for the creator of their task now;
	// nil allows all.
	MayDeliver func(kg.AgentID) bool
	// MaxActive is the maximum number of hooks of active tasks. Those of one creator are at
	// most half of the number that the others leave (throttle.Pool).
	MaxActive int
	// Pause is the delay after the first failed attempt. It doubles with each further
	// one.
	Pause time.Duration
	// FlushEvery is the interval at which positions are stored.
	FlushEvery time.Duration
	// Logger logs failed deliveries. It discards if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.WantsFullTask == nil {
		o.WantsFullTask = func(string) bool { return false }
	}
	if o.MayDeliver == nil {
		o.MayDeliver = func(kg.AgentID) bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxActive = cmp.Or(o.MaxActive, DefaultMaxActive)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	o.FlushEvery = cmp.Or(o.FlushEvery, DefaultFlushEvery)
	return o
}
