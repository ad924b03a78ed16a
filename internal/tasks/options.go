package tasks

import (
	"cmp"
	"log/slog"
	"time"

	"koine/kg"
)

// Limits of requests and defaults of Options.
const (
	MaxParts         = 64
	MaxMessageBytes  = 256 << 10 // of a message, and of a chunk of an artifact
	MaxMetadataBytes = 16 << 10
	MaxKeyBytes      = 256 // of ids that clients choose
	MaxTextBytes     = 4 << 10
	MaxExtensions    = 32
	MaxReferences    = 32
	MaxMessages      = 10_000 // of a task
	MaxArtifacts     = 100    // of a task
	MaxReportChunks  = 100    // of one report
	MaxReportLetters = 100    // named by one report
	// DefaultMaxArtifactBytes bounds an artifact, counting ChunkOverhead for each of
	// its chunks.
	DefaultMaxArtifactBytes = 64 << 20
	ChunkOverhead           = 512
	// DefaultMaxReadBytes bounds the content that is read of a task, and of all tasks of a page.
	DefaultMaxReadBytes = 16 << 20
	// DefaultMaxFeedBytes bounds a task that has not ended in an event of a feed.
	DefaultMaxFeedBytes = 1 << 20
	MaxFailureBytes     = 16 << 10
	DefaultPage         = 50
	MaxPage             = 100
	DefaultMaxListed    = 10_000
	DefaultMaxWorking   = 64
	DefaultMaxQueued    = 1024
	DefaultLeaveGrace   = time.Minute
	DefaultExpiry       = 24 * time.Hour
	DefaultMaxCommits   = 10_000
	maxExpired          = 1000 // tasks expired in one round
	expiryPace          = 10 * time.Second
)

// Options configures a Service. The zero Options is valid.
type Options struct {
	// Known reports whether an agent accepts tasks; nil knows only the agents of
	// Handle.
	Known func(kg.AgentID) bool
	// Limits returns the limits of an agent; nil has none. It is called in updates and
	// must not block.
	Limits func(kg.AgentID) Limits
	// CurrentRights returns the sender of a message with its current rights, or an error if
	// it has none any more (auth.Gate). A message may wait for long, so workers act by the
	// rights of the time of their work. Nil, in open mode, keeps the rights of the time of
	// the message.
	CurrentRights func(kg.Principal) (kg.Principal, error)
	// MaxWorking bounds the tasks that workers in this process run at a time, MaxQueued
	// those that wait. A sender gets at most half of the part of MaxWorking that the others
	// leave, and of both together.
	MaxWorking, MaxQueued int
	// MaxListed bounds the tasks of a context or a parent that a list reads, and the
	// pairs of agents that it covers.
	MaxListed int
	// MaxArtifactBytes bounds the content of an artifact, counting ChunkOverhead for
	// each chunk.
	MaxArtifactBytes int
	// MaxReadBytes bounds the stored bytes that are read of a task, or of all tasks of a page,
	// counting PartOverhead for each message and part.
	MaxReadBytes int
	// MaxFeedBytes is MaxReadBytes for the events of a Feed about a task that has not ended,
	// because each change of the task is such an event.
	MaxFeedBytes int
	// Expiry is how long a task waits for its handler to claim it.
	Expiry time.Duration
	// LeaveGrace is how long the tasks of an agent that deregistered wait for its
	// return before they fail.
	LeaveGrace time.Duration
	// Registered reports whether an agent is registered again after RecordDeparture; nil is Known.
	Registered func(kg.AgentID) bool
	// Unregistered lists the known agents that are not registered; nil is none. It is
	// called once.
	Unregistered func() []kg.AgentID
	// DeleteTx removes, in the update that deletes a task, records of others about it; nil is
	// none.
	DeleteTx func(*kg.Tx, *Task) error
	// MaxCommits is the number of commits that one page of Commits reads.
	MaxCommits int
	// Clock is the clock for Expiry and Limits; nil is time.Now.
	Clock func() time.Time
	// Repeats makes a repeated message create a new task instead of returning the first
	// one.
	Repeats bool
	// Logger receives internal errors. Nil discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.DeleteTx == nil {
		o.DeleteTx = func(*kg.Tx, *Task) error { return nil }
	}
	if o.Known == nil {
		o.Known = func(kg.AgentID) bool { return false }
	}
	if o.CurrentRights == nil {
		o.CurrentRights = func(p kg.Principal) (kg.Principal, error) { return p, nil }
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
	o.MaxReadBytes = cmp.Or(o.MaxReadBytes, DefaultMaxReadBytes)
	o.MaxFeedBytes = cmp.Or(o.MaxFeedBytes, DefaultMaxFeedBytes)
	o.Expiry = cmp.Or(o.Expiry, DefaultExpiry)
	o.LeaveGrace = cmp.Or(o.LeaveGrace, DefaultLeaveGrace)
	o.MaxCommits = cmp.Or(o.MaxCommits, DefaultMaxCommits)
	return o
}
