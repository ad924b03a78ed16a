package presence

import (
	"cmp"
	"log/slog"
	"time"

	"koine/internal/agents"
)

// Defaults and limits of the Options.
const (
	DefaultValidity           = 60 * time.Second
	DefaultIdleAfter          = 5 * time.Minute
	DefaultLinger             = 15 * time.Second
	DefaultSettle             = time.Second
	DefaultWriteInterval      = time.Second
	DefaultAgentWriteInterval = 5 * time.Second
	DefaultMaxTracked         = agents.MaxAgents
	// MinValidity and MaxValidity bound the validity that a caller asks for.
	MinValidity = time.Second
	MaxValidity = 10 * time.Minute
	// MaxListeners is the maximum number of open streams of changes. MaxPendingChanges is
	// the maximum number of agents whose change waits for a slow one.
	MaxListeners      = 1024
	MaxPendingChanges = 4096
	// MaxTransitions is the maximum number of changes per commit.
	MaxTransitions = 1000
	// MaxBackoff is the maximum delay before a failed commit is retried. The first
	// delay is Options.WriteInterval.
	MaxBackoff = time.Minute
)

// Options configures a Tracker. The zero value is valid.
type Options struct {
	// Validity is how long a heartbeat is valid, and how long a restarted server waits
	// for agents that were present.
	Validity time.Duration
	// IdleAfter is the inactivity after which an agent is idle.
	IdleAfter time.Duration
	// Linger is how long an agent stays present after its last connection ends.
	Linger time.Duration
	// Settle is how long a change must last before it is stored.
	Settle time.Duration
	// WriteInterval is the minimum time between two commits. AgentWriteInterval is the
	// minimum time between two commits that change the same agent.
	WriteInterval, AgentWriteInterval time.Duration
	// MaxTracked is the maximum number of tracked agents. Further connections are
	// ignored, and further heartbeats fail.
	MaxTracked int
	Logger     *slog.Logger // discards if nil
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
