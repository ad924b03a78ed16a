// Package channel has the data of channels: a Channel with its members, rights, limits,
// invitations and restrictions, and the record as which it is stored (ID.RecordGraph).
// ReadRecord, CreateRecord and ChangeRecord are the only readers and writers of records
// within a transaction; Channel.ApplyStatement and Channel.RemoveStatement follow a commit.
// It decides nothing about a caller: that is up to package channels.
//
// Begin with Channel and Rights.
package channel

import (
	"slices"
	"time"

	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/kg"
)

// Channel is a conversation. Callers must not modify it.
type Channel struct {
	ID         ID
	Kind       Kind
	Name       string
	Topic      string
	Visibility Visibility
	CreatedAt  time.Time
	CreatedBy  kg.AgentID
	// Members are sorted by the time at which they joined.
	Members      []Member
	Invited      []Invitation
	Restrictions []Restriction // may include ended ones
	Overseers    Overseers     // in the order of their first reads
	Metadata     []byte        // a JSON object, or nil
	// Rights are the channel's explicit rights. Policy adds the defaults.
	Rights Rights
	// MaxMembers is the maximum number of members; 0 means the server's limit.
	MaxMembers int
	// Limits are the channel's own limits.
	Limits Limits
	// Scope is the scope of the channel, or "". MemberPolicy determines who takes part
	// in a channel of a scope.
	Scope        scope.ID
	MemberPolicy MemberPolicy
	// ExpireAfter is the idle timeout: the channel closes this long after its last
	// message. 0 means never.
	ExpireAfter      time.Duration
	ExpireAfterSetAt time.Time // when ExpireAfter was set
	// KeepMessages is the number of newest messages that keep their content; 0 means
	// all.
	KeepMessages int64
	// Audit means that each message is copied to the event log of the scope.
	Audit bool
	// ClosedAt and CloseReason are set once the channel is closed. A closed channel
	// accepts no messages.
	ClosedAt    time.Time
	CloseReason string
	// Version starts at 1 and increases with each change of name, topic, metadata,
	// rights, and membership.
	Version int64
	JournalState
	// Replayed means that Create found the channel under its idempotency key.
	Replayed bool
	// Deleted means that the channel was deleted: no agent finds it any more. FormerReaders
	// are the members that could read it then, sorted. They keep the audit copies of its
	// messages. Only channels in a scope have them.
	Deleted       bool
	DeletedAt     time.Time
	FormerReaders []kg.AgentID
}

// JournalState is the part of a channel that follows from its messages, not from its record.
// Callers that find the channel without reading it get the zero value.
type JournalState struct {
	// Messages is the number of messages ever published, which is the sequence of the
	// last one.
	Messages int64
	// LastMessageAt is the time of the last message, or the zero time.
	LastMessageAt time.Time
}

// Kind is the kind of a channel.
type Kind string

// Channel kinds.
const (
	Ordered   Kind = "channel"   // the kind of the channels extension
	Direct    Kind = "direct"    // exactly two agents
	Broadcast Kind = "broadcast" // owners publish, others read
	Room      Kind = "room"      // any agent that finds it can join and then read
)

// Visibility determines which agents can find and read a channel.
type Visibility string

// Visibilities. Only its members can find a private channel.
const (
	Private Visibility = "private"
	Public  Visibility = "public"
)

// MemberPolicy determines the participation in a channel of a scope. Channels outside of a
// scope have none.
type MemberPolicy string

// Member policies.
const (
	Explicit MemberPolicy = "explicit" // members with access to the scope
	ByScope  MemberPolicy = "scope"    // every agent with access to the scope
)

// Status is the state of a channel.
type Status string

// Channel states. A closed channel remains readable and never reopens.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Limits of channels (channels extension, section 8).
const (
	MaxNameRunes     = 128
	MaxTopicRunes    = 1024
	MaxMetadataBytes = 16 << 10
	MaxMessageBytes  = 256 << 10 // of parts, metadata and references
	MaxKeepMessages  = 1_000_000
)

// Limits of the idle timeout.
const (
	MinExpireAfter = time.Second
	MaxExpireAfter = 10 * 365 * 24 * time.Hour
)

// Reasons of koine itself for closing a channel.
const (
	ReasonExpired = "expired"
	ReasonEnded   = "its scope has ended"
)

// ApplyStatement adds one statement of the record to the channel.
func (c *Channel) ApplyStatement(property, object kg.Term, a *kg.Assertion) {
	switch property {
	case vocab.Name:
		c.Name = object.Value()
	case vocab.Topic:
		c.Topic = object.Value()
	case vocab.Kind:
		c.Kind = Kind(object.Value())
	case vocab.Visibility:
		c.Visibility = Visibility(object.Value())
	case vocab.Created:
		c.CreatedAt, _ = object.DateTimeValue()
	case vocab.Creator:
		c.CreatedBy = kg.AgentID(object.Value())
	case vocab.Metadata:
		c.Metadata = []byte(object.Value())
	case vocab.Version:
		c.Version = vocab.IntegerOf(object)
	case vocab.Scope:
		c.Scope = scope.IDOf(object)
	case vocab.Policy:
		c.MemberPolicy = MemberPolicy(object.Value())
	case vocab.Closed:
		c.ClosedAt, _ = object.DateTimeValue()
	case vocab.CloseReason:
		c.CloseReason = object.Value()
	case vocab.Keep:
		c.KeepMessages = vocab.IntegerOf(object)
	case vocab.Audit:
		c.Audit = true
	case vocab.ExpireAfter:
		c.ExpireAfter, c.ExpireAfterSetAt = time.Duration(vocab.IntegerOf(object))*time.Millisecond, a.Time
	case vocab.Deleted:
		c.Deleted = true
		c.DeletedAt, _ = object.DateTimeValue()
	case vocab.FormerReader:
		at, had := slices.BinarySearch(c.FormerReaders, kg.AgentID(object.Value()))
		if !had {
			c.FormerReaders = slices.Insert(slices.Clone(c.FormerReaders), at, kg.AgentID(object.Value()))
		}
	case vocab.MaxMembers:
		c.MaxMembers = int(vocab.IntegerOf(object))
	case vocab.Invited:
		c.Invited = append(c.invitationsWithout(kg.AgentID(object.Value())), Invitation{kg.AgentID(object.Value()), a.Source, a.Validity.From})
	case vocab.Overseer:
		c.RemoveStatement(property, object)
		c.Overseers = append(c.Overseers, Overseer{kg.AgentID(object.Value()), a.Validity.From})
	default:
		if (*Restrictions)(&c.Restrictions).ApplyStatement(property, object, a) {
			return
		}
		if grantee := c.Rights.forProperty(property); grantee != nil {
			*grantee = Grantee(object.Value())
		}
		if n := c.Limits.forProperty(property); n != nil {
			*n = int(vocab.IntegerOf(object))
		}
		if role := RoleOf(property); role != "" {
			c.RemoveStatement(property, object)
			c.Members = append(c.Members, memberOf(role, object, a))
		}
	}
}

func memberOf(role Role, object kg.Term, a *kg.Assertion) Member {
	return Member{Agent: kg.AgentID(object.Value()), Role: role, Joined: a.Validity.From}
}

// RemoveStatement removes one statement of the record from the channel.
func (c *Channel) RemoveStatement(property, object kg.Term) {
	switch property {
	case vocab.Name:
		if c.Name == object.Value() {
			c.Name = ""
		}
	case vocab.Topic:
		if c.Topic == object.Value() {
			c.Topic = ""
		}
	case vocab.Keep:
		if c.KeepMessages == vocab.IntegerOf(object) {
			c.KeepMessages = 0
		}
	case vocab.Audit:
		c.Audit = false
	case vocab.ExpireAfter:
		if c.ExpireAfter.Milliseconds() == vocab.IntegerOf(object) {
			c.ExpireAfter = 0
		}
	case vocab.Metadata:
		if string(c.Metadata) == object.Value() {
			c.Metadata = nil
		}
	case vocab.MaxMembers:
		if int64(c.MaxMembers) == vocab.IntegerOf(object) {
			c.MaxMembers = 0
		}
	case vocab.Invited:
		c.Invited = c.invitationsWithout(kg.AgentID(object.Value()))
	case vocab.Overseer:
		c.Overseers = slices.DeleteFunc(slices.Clone(c.Overseers), func(o Overseer) bool { return o.Agent == kg.AgentID(object.Value()) })
	default:
		if (*Restrictions)(&c.Restrictions).RemoveStatement(property, object) {
			return
		}
		if n := c.Limits.forProperty(property); n != nil && int64(*n) == vocab.IntegerOf(object) {
			*n = 0
		}
		if grantee := c.Rights.forProperty(property); grantee != nil && string(*grantee) == object.Value() {
			*grantee = ""
		}
		if role := RoleOf(property); role != "" {
			c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m Member) bool {
				return m.Agent == kg.AgentID(object.Value()) && m.Role == role
			})
		}
	}
}

// ParseMemberPolicy validates a member policy; "" means Explicit.
func ParseMemberPolicy(policy MemberPolicy) (MemberPolicy, error) {
	switch policy {
	case "":
		return Explicit, nil
	case Explicit, ByScope:
		return policy, nil
	}
	return "", kg.Errorf(kg.CodeInvalid, "memberPolicy must be explicit or scope, not %.60q", policy).At("memberPolicy")
}

// ErrPolicyWithoutScope is the error for a member policy of a channel outside of a scope.
func ErrPolicyWithoutScope() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "memberPolicy requires a scope").At("memberPolicy")
}

// EffectiveVisibility returns the visibility of a channel for agents with access to its
// scope.
func EffectiveVisibility(v Visibility, policy MemberPolicy) Visibility {
	if policy == ByScope {
		return Public
	}
	return v
}

// Status returns Open if the channel accepts messages.
func (c *Channel) Status() Status {
	if c.ClosedAt.IsZero() {
		return Open
	}
	return Closed
}

// ClosesAt returns the end of the idle timeout if last is the time of the last message;
// the zero time means never.
func (c *Channel) ClosesAt(last time.Time) time.Time {
	if c.ExpireAfter == 0 || c.Status() == Closed {
		return time.Time{}
	}
	if last.Before(c.ExpireAfterSetAt) {
		last = c.ExpireAfterSetAt
	}
	return last.Add(c.ExpireAfter)
}

// ExpiresAt returns the time at which the channel closes unless another message is
// published. It is the zero time if there is no idle timeout, if the channel is closed,
// and in an outline (see Service.Get).
func (c *Channel) ExpiresAt() time.Time {
	if c.CreatedBy == "" {
		return time.Time{} // an outline has no LastMessageAt
	}
	return c.ClosesAt(c.LastMessageAt)
}

// MarkClosedIfDue marks a channel as closed if its idle timeout has ended, before a
// commit records it.
func (c *Channel) MarkClosedIfDue(now time.Time) {
	if due := c.ClosesAt(c.LastMessageAt); !due.IsZero() && !now.Before(due) {
		c.ClosedAt, c.CloseReason = due, ReasonExpired
	}
}

// CheckExpireAfter validates an idle timeout; 0 means none.
func CheckExpireAfter(d time.Duration) error {
	if d == 0 {
		return nil
	}
	if d < MinExpireAfter || d%time.Millisecond != 0 {
		return kg.Errorf(kg.CodeInvalid, "expireAfter must be at least %s, in whole milliseconds", MinExpireAfter).At("expireAfter")
	}
	if d > MaxExpireAfter {
		return check.TooMuch("expireAfter", "expireAfter must be at most %s", MaxExpireAfter)
	}
	return nil
}

// CheckKeepMessages validates KeepMessages; 0 keeps all.
func CheckKeepMessages(n int64) error {
	switch {
	case n < 0:
		return kg.Errorf(kg.CodeInvalid, "keepMessages must not be negative").At("keepMessages")
	case n > MaxKeepMessages:
		return check.TooMuch("keepMessages", "keepMessages is %d; the limit is %d", n, MaxKeepMessages)
	}
	return nil
}

func CheckTexts(name, topic string) error {
	if err := check.Text("name", name, MaxNameRunes); err != nil {
		return err
	}
	return check.Text("topic", topic, MaxTopicRunes)
}

// ErrNotFound is the same for a channel that does not exist and for one that the
// caller may not see, so that it reveals nothing.
func ErrNotFound() *kg.Error {
	return kg.Errorf(kg.CodeChannelNotFound, "there is no such channel").At("channelId")
}

func ErrClosed() *kg.Error {
	return kg.Errorf(kg.CodeChannelClosed, "the channel is closed").At("channelId")
}

func ErrNameTaken() *kg.Error {
	return kg.Errorf(kg.CodeNameTaken, "name is taken by another channel of the intent").At("name")
}

func ErrNoName() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "channel in a scope requires a name").At("name")
}

func ErrNotInvited() *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "invitation not found").At("principalId")
}
