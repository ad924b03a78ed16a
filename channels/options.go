package channels

import (
	"cmp"
	"time"

	"koine/kg"
)

// Bounds of the channels extension (section 8) and of WIRE §7.
const (
	MaxNameRunes      = 128
	MaxMetadataBytes  = 16 << 10
	MaxParts          = 32
	MaxMessageBytes   = 256 << 10
	MaxKeyRunes       = 128
	DefaultPage       = 50
	MaxPage           = 200
	MaxPageBytes      = 4 << 20 // of the content of a page, but that it has one message
	MaxArtifactRefs   = 32
	MaxAuthorIDs      = 32
	MaxTopicRunes     = 1024
	MaxReferenceBytes = 1 << 10 // of one artifact reference
	MaxReplies        = 5000    // of one message, that Replies looks at
	MaxRemovals       = 20      // looks of RemoveAgent at where the agent is, until it is nowhere
)

// Bounds of scopes.
const (
	// MaxScopeChannels bounds the channels of an intent with all of its tasks: they
	// close in one commit.
	MaxScopeChannels = 1000
	MaxScopeTasks    = 100 // of an intent
	MaxScopeAgents   = 1000
	MaxScopeRoles    = 64
	MaxRoleRunes     = 128
)

// Defaults of Options.
const (
	DefaultMaxMembers        = 1000
	DefaultMaxChannels       = 100_000
	DefaultMaxScopes         = 100_000
	DefaultMaxPartitions     = 1024
	DefaultMaxQueuedExpiries = 1 << 16
	DefaultMaxReceipts       = 10_000
	DefaultMaxPendingAsks    = 1000
	DefaultCountBatch        = 1000
)

// Defaults of Options about who is let in and kept out.
const (
	DefaultMaxRestrictions = 1000
	DefaultMaxInvitations  = 1000
	DefaultMaxRates        = 1 << 16
	DefaultMaxListeners    = 1 << 14
)

// Options of a Service. The zero Options is a working one.
type Options struct {
	// MaxMembers bounds the members of a channel, MaxChannels the channels of the
	// server, deleted ones included: who may see what is kept in memory.
	MaxMembers  int
	MaxChannels int
	// MaxScopes bounds the scopes of the server, ended ones included.
	MaxScopes int
	// MaxPartitions bounds the sets of agents among whom alone messages of one channel
	// were: an author and its recipients, whoever of them it is. Each has a graph,
	// and who reads it is kept in memory.
	MaxPartitions int
	// MaxQueuedExpiries is how many of the messages that expire next are kept in memory.
	MaxQueuedExpiries int
	// MaxReceipts is how many acknowledgements wait to be written.
	MaxReceipts int
	// MaxPendingAsks is how many wait for responses (Ask, AskAll).
	MaxPendingAsks int
	// CountBatch is how many messages of a channel are counted at a time (Counts): so
	// many and a few more are read when somebody asks.
	CountBatch int
	// Agents calls fn for each agent that the server knows, until it says stop. Nil
	// knows none but members of channels.
	Agents func(fn func(kg.AgentID) bool)
	Clock  func() time.Time // time.Now when nil
	// WithdrawProposal withdraws the proposal that a message's facts wait in, in the commit that
	// retracts the message, unless it has ended (review.Service.TakeBack), and tells
	// whether it did. Nil leaves proposals alone.
	WithdrawProposal func(tx *kg.Tx, proposal, why string) (taken bool, err error)

	// MaxRestrictions bounds who is banned or muted in a channel, and in the server;
	// MaxInvitations who is invited to a channel and has not answered.
	MaxRestrictions int
	MaxInvitations  int
	// Tiers are the bounds of those who have a role; Tier those of all others, the zero
	// Tier being none. Of several, the widest holds.
	Tiers map[string]Tier
	Tier  Tier
	// MaxRates bounds how many principals, and authors in channels that bound them,
	// publish in one minute, where that is bounded, and how many principals send
	// signals in channels: more are told to wait.
	MaxRates int
	// MaxListeners bounds who reads signals at once.
	MaxListeners int

	pause time.Duration // between two looks at what is due; for tests
}

func (o Options) withDefaults() Options {
	o.pause = cmp.Or(o.pause, expiryPause)
	o.MaxMembers = cmp.Or(o.MaxMembers, DefaultMaxMembers)
	o.MaxChannels = cmp.Or(o.MaxChannels, DefaultMaxChannels)
	o.CountBatch = cmp.Or(o.CountBatch, DefaultCountBatch)
	o.MaxPendingAsks = cmp.Or(o.MaxPendingAsks, DefaultMaxPendingAsks)
	o.MaxReceipts = cmp.Or(o.MaxReceipts, DefaultMaxReceipts)
	o.MaxQueuedExpiries = cmp.Or(o.MaxQueuedExpiries, DefaultMaxQueuedExpiries)
	o.MaxScopes = cmp.Or(o.MaxScopes, DefaultMaxScopes)
	o.MaxPartitions = cmp.Or(o.MaxPartitions, DefaultMaxPartitions)
	o.MaxRestrictions = cmp.Or(o.MaxRestrictions, DefaultMaxRestrictions)
	o.MaxListeners = cmp.Or(o.MaxListeners, DefaultMaxListeners)
	o.MaxRates = cmp.Or(o.MaxRates, DefaultMaxRates)
	o.MaxInvitations = cmp.Or(o.MaxInvitations, DefaultMaxInvitations)
	if o.Agents == nil {
		o.Agents = func(func(kg.AgentID) bool) {}
	}
	if o.WithdrawProposal == nil {
		o.WithdrawProposal = func(*kg.Tx, string, string) (bool, error) { return false, nil }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}
