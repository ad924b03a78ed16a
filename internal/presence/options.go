package presence

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/agents"
)

// Defaults and bounds of the Options.
const (
	DefaultValidity           = 60 * time.Second
	DefaultIdleAfter          = 5 * time.Minute
	DefaultLinger             = 15 * time.Second
	DefaultSettle             = time.Second
	DefaultWriteInterval      = time.Second
	DefaultAgentWriteInterval = 5 * time.Second
	DefaultMaxTracked         = agents.MaxAgents
	// MaxTransitions bounds the changes of one commit; what is left is in the next.
	MaxTransitions = 1000
	// MaxBackoff bounds the time after which a commit that failed is tried again;
	// the first time it is Options.Pause.
	MaxBackoff = time.Minute
)

// Options of a Tracker. The zero Options works.
type Options struct {
	// Validity is how long a heartbeat holds, and how long who was there before a
	// restart is waited for.
	Validity time.Duration
	// IdleAfter is how long who is there may do nothing before it is idle.
	IdleAfter time.Duration
	// Linger is how long an agent whose last connection ended is waited for.
	Linger time.Duration
	// Settle is how long a change must last before it is written.
	Settle time.Duration
	// Pause is the least time between two commits, Stay that between two of which
	// both change the same agent.
	WriteInterval, AgentWriteInterval time.Duration
	// MaxTracked bounds the agents that are known at a time. Further connections do
	// not count, and further heartbeats are refused.
	MaxTracked int
	Logger     *slog.Logger // discards when nil
}

func (o Options) withDefaults() Options {
	o.Validity = cmp.Or(o.Validity, DefaultValidity)
	o.IdleAfter = cmp.Or(o.IdleAfter, DefaultIdleAfter)
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.Settle = cmp.Or(o.Settle, DefaultSettle)
	o.WriteInterval = cmp.Or(o.WriteInterval, DefaultWriteInterval)
	o.AgentWriteInterval = cmp.Or(o.AgentWriteInterval, DefaultAgentWriteInterval)
	o.MaxTracked = cmp.Or(o.MaxTracked, DefaultMaxTracked)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
