package tasks

import (
	"cmp"
	"log/slog"
	"time"

	"koine/kg"
)

// Bounds of what is sent.
const (
	MaxParts         = 64
	MaxMessageBytes  = 256 << 10 // of a message, and of a chunk of an artifact
	MaxMetadataBytes = 16 << 10
	MaxKeyBytes      = 256 // of ids that others choose
	MaxTextBytes     = 4 << 10
	MaxExtensions    = 32
	MaxReferences    = 32
	MaxMessages      = 10_000 // of a task
	MaxArtifacts     = 100    // of a task
	MaxReportChunks  = 100    // of one report
	MaxReportLetters = 100    // that a report names
	// DefaultMaxArtifactBytes bounds an artifact, with ChunkOverhead for each of its chunks.
	DefaultMaxArtifactBytes = 64 << 20
	ChunkOverhead           = 512
	MaxFailureBytes         = 16 << 10
	DefaultPage             = 50
	MaxPage                 = 100
	DefaultMaxListed        = 10_000
	DefaultMaxWorking       = 64
	DefaultMaxQueued        = 1024
	DefaultLeaveGrace       = time.Minute
	DefaultExpiry           = 24 * time.Hour
	DefaultMaxCommits       = 10_000
	maxExpired              = 1000 // tasks that expire in one round
	expiryPace              = 10 * time.Second
)

// Options of a Service. The zero Options is a working one.
type Options struct {
	// Known tells whether there is an agent that takes tasks; nil knows none but those
	// of Handle.
	Known func(kg.AgentID) bool
	// Limits are how much an agent takes; nil has none. It is asked in updates, and is not
	// to block.
	Limits func(kg.AgentID) Limits
	// MaxWorking bounds the tasks that handlers in this process work on at a time,
	// MaxQueued those that wait for it.
	MaxWorking, MaxQueued int
	// MaxListed bounds the tasks of a context or a parent that a list looks at, and the
	// pairs of agents whose tasks are in it.
	MaxListed int
	// MaxArtifactBytes bounds the content of an artifact, with ChunkOverhead for each chunk.
	MaxArtifactBytes int
	// Expiry is how long a task waits for its handler to claim it.
	Expiry time.Duration
	// LeaveGrace is how long the tasks of an agent that left wait for it to come back before
	// they fail.
	LeaveGrace time.Duration
	// Registered tells whether an agent that left (Left) is back; nil is Known.
	Registered func(kg.AgentID) bool
	// Unregistered lists the agents on record that are not registered; nil is none. It is
	// asked once.
	Unregistered func() []kg.AgentID
	// MaxCommits is how many commits of the log a page of Commits looks at.
	MaxCommits int
	// Clock is what Expiry and Limits go by; nil is the time of day.
	Clock func() time.Time
	// Repeats makes a new task of a message that was sent before.
	Repeats bool
	// Logger is told of tasks that fail for reasons of ours. Nil is told nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Known == nil {
		o.Known = func(kg.AgentID) bool { return false }
	}
	if o.Registered == nil {
		o.Registered = o.Known
	}
	if o.Unregistered == nil {
		o.Unregistered = func() []kg.AgentID { return nil }
	}
	if o.Limits == nil {
		o.Limits = func(kg.AgentID) Limits { return Limits{} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.MaxWorking = cmp.Or(o.MaxWorking, DefaultMaxWorking)
	o.MaxQueued = cmp.Or(o.MaxQueued, DefaultMaxQueued)
	o.MaxListed = cmp.Or(o.MaxListed, DefaultMaxListed)
	o.MaxArtifactBytes = cmp.Or(o.MaxArtifactBytes, DefaultMaxArtifactBytes)
	o.Expiry = cmp.Or(o.Expiry, DefaultExpiry)
	o.LeaveGrace = cmp.Or(o.LeaveGrace, DefaultLeaveGrace)
	o.MaxCommits = cmp.Or(o.MaxCommits, DefaultMaxCommits)
	return o
}
