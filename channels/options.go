package channels

import (
	"cmp"
	"context"
	"iter"
	"time"

	"koine/channels/internal/retention"
	"koine/kg"
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
	DefaultMaxRestrictions   = 1000
	DefaultMaxInvitations    = 1000
	DefaultMaxOverseers      = 1000
	DefaultMaxRates          = 1 << 16
	DefaultMaxVerdicts       = 1000
	DefaultMaxListeners      = 1 << 14
)

// Options configures a Service. The zero value is valid.
type Options struct {
	// MaxMembers bounds the members of a channel. MaxChannels bounds the channels of
	// the server including deleted ones, because the access data of each is kept in
	// memory.
	MaxMembers  int
	MaxChannels int
	// MaxScopes bounds the scopes of the server including ended ones.
	MaxScopes int
	// MaxPartitions bounds the partitions of a channel: the distinct sets of author and
	// recipients of addressed messages. Each partition has a graph, and its readers are
	// kept in memory.
	MaxPartitions int
	// MaxQueuedExpiries is the number of expiring messages kept in memory, earliest
	// first.
	MaxQueuedExpiries int
	// MaxReceipts is the number of acknowledgements that may wait to be written.
	MaxReceipts int
	// MaxPendingAsks is the number of calls of Ask and AskAll that may wait.
	MaxPendingAsks int
	// KeepEnded is how long messages keep their content behind the end of their intent,
	// unless their channel is audited; 0 means for ever.
	KeepEnded time.Duration
	// CountBatch is the number of messages of a channel that are counted at a time.
	// Counts reads up to about this many uncounted messages itself.
	CountBatch int
	// Agents calls fn for each agent known to the server until fn returns false. If
	// nil, only the members of channels are known.
	Agents func(fn func(kg.AgentID) bool)
	Clock  func() time.Time // time.Now if nil
	// Presence yields the changes of agents' presence until the context is done, for
	// FollowAgent. If nil, feeds tell nothing of presence.
	Presence func(context.Context) (iter.Seq[PresenceChange], error)
	// WithdrawProposal withdraws the proposal that holds the facts of a message, within
	// the commit that retracts the message, unless the proposal is already decided. It
	// reports whether it withdrew the proposal. If nil, proposals are left alone.
	WithdrawProposal func(tx *kg.Tx, proposal, why string) (taken bool, err error)

	// Scanner judges messages before they are published; nil publishes all. Reviews keeps
	// those that it holds, and must be set with it.
	Scanner Scanner
	Reviews HeldReviews
	// OneAdmission returns a context in which updates count as one against the caller's
	// rate. If nil, each counts.
	OneAdmission func(context.Context) context.Context
	// MaxVerdicts bounds the refusals of messages with an idempotency key that are kept
	// for each channel. The oldest go first; such a key is then judged anew.
	MaxVerdicts int

	// MaxRestrictions bounds the bans and mutes of a channel, and of the server.
	// MaxInvitations bounds the pending invitations of a channel.
	MaxRestrictions int
	MaxInvitations  int
	// OverseerRole is the role of the principals that may read channels without taking part,
	// "" for none. Each is in the channel's record before its first read. MaxOverseers bounds
	// those on the record of one channel.
	OverseerRole string
	MaxOverseers int
	// Tiers are the limits of principals by role. Tier applies to principals without
	// such a role; the zero Tier has no limits. Of several tiers, the most permissive
	// limits apply.
	Tiers map[string]Tier
	Tier  Tier
	// MaxRates bounds the principals, and the authors in rate-limited channels, whose
	// rate is tracked at the same time, for messages and for signals. Others have to
	// wait.
	MaxRates int
	// MaxListeners bounds the concurrent readers of signals, feeds of agents among them.
	MaxListeners int

	pause, endedPause time.Duration // between two checks for due work, and for ended intents; for tests
}

func (o Options) withDefaults() Options {
	o.endedPause = cmp.Or(o.endedPause, o.pause, retention.EndedPause)
	o.pause = cmp.Or(o.pause, retention.ExpiryPause)
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
	o.MaxOverseers = cmp.Or(o.MaxOverseers, DefaultMaxOverseers)
	o.MaxInvitations = cmp.Or(o.MaxInvitations, DefaultMaxInvitations)
	if o.Agents == nil {
		o.Agents = func(func(kg.AgentID) bool) {}
	}
	if o.WithdrawProposal == nil {
		o.WithdrawProposal = func(*kg.Tx, string, string) (bool, error) { return false, nil }
	}
	if o.OneAdmission == nil {
		o.OneAdmission = func(ctx context.Context) context.Context { return ctx }
	}
	o.MaxVerdicts = cmp.Or(o.MaxVerdicts, DefaultMaxVerdicts)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}
