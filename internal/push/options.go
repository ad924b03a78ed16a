package push

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/tasks"
	"koine/internal/webhook"
)

// Bounds of delivery.
const (
	// MaxPending is how many commits wait for one hook.
	MaxPending = 1000
	// MaxTries is how often one notification is tried.
	MaxTries = 6

	DefaultMaxActive  = 10_000
	DefaultPause      = time.Second
	DefaultFlushEvery = time.Second
)

// Options of a Service. Body is required.
type Options struct {
	webhook.Options
	// Body writes an event in a form (Config.Form). t is the task as it is; nil where
	// Whole says that the form does not want it, and then only its id and context are
	// there. A nil e wants all of t: the log has no more what happened to it.
	Body func(form string, t *tasks.Task, e *tasks.Event) ([]byte, error)
	// WantsFullTask tells whether a form shows the task as it is: of one commit it is told once.
	WantsFullTask func(form string) bool
	// MaxActive is how many hooks of tasks that go on there are; one more is refused.
	MaxActive int
	// Pause is how long a hook is left alone that failed once; twice as long with each
	// try.
	Pause time.Duration
	// FlushEvery is how often positions are written down.
	FlushEvery time.Duration
	// Logger is told what is given up. Nil is told nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.WantsFullTask == nil {
		o.WantsFullTask = func(string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxActive = cmp.Or(o.MaxActive, DefaultMaxActive)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	o.FlushEvery = cmp.Or(o.FlushEvery, DefaultFlushEvery)
	return o
}
