package channels

import (
	"cmp"
	"slices"
	"time"

	"koine/kg"
)

// Visibility determines who can find and read a channel.
type Visibility string

// Visibilities. Only its members can find a private channel.
const (
	Private Visibility = "private"
	Public  Visibility = "public"
)

// Kind is the kind of a channel.
type Kind string

// Channel kinds.
const (
	Ordered   Kind = "channel"   // the kind of the channels extension
	Direct    Kind = "direct"    // exactly two agents
	Broadcast Kind = "broadcast" // owners publish, others read
	Room      Kind = "room"      // any agent that finds it can join and then read
)

// Channel is a conversation. Callers must not modify it.
type Channel struct {
	ID         ChannelID
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
	Metadata     []byte        // a JSON object, or nil
	// Rights are the channel's explicit rights. Policy adds the defaults.
	Rights Rights
	// MaxMembers is the maximum number of members; 0 means the server's limit.
	MaxMembers int
	// Limits are the channel's own limits.
	Limits Limits
	// Scope is the scope of the channel, or "". MemberPolicy determines who takes part
	// in a channel of a scope.
	Scope        ScopeID
	MemberPolicy MemberPolicy
	// ExpireAfter is the idle timeout: the channel closes this long after its last
	// message. 0 means never.
	ExpireAfter      time.Duration
	expireAfterSetAt time.Time // when ExpireAfter was set
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
	// Messages is the number of messages ever published, which is the sequence of the
	// last one.
	Messages int64
	// LastMessageAt is the time of the last message, or the zero time.
	LastMessageAt time.Time
	// Replayed means that Create found the channel under its idempotency key.
	Replayed bool

	deleted bool
}

// memberRole returns the role of an agent, or "" if it is not a member.
func (c *Channel) memberRole(agent kg.AgentID) Role {
	for i := range c.Members {
		if c.Members[i].Agent == agent {
			return c.Members[i].Role
		}
	}
	return ""
}

func (c *Channel) ownerCount() (n int) {
	for i := range c.Members {
		if c.Members[i].Role == Owner {
			n++
		}
	}
	return n
}

// applyStatement adds one statement of the record to the channel.
func (c *Channel) applyStatement(property, object kg.Term, a *kg.Assertion) {
	switch property {
	case propName:
		c.Name = object.Value()
	case propTopic:
		c.Topic = object.Value()
	case propKind:
		c.Kind = Kind(object.Value())
	case propVisibility:
		c.Visibility = Visibility(object.Value())
	case propCreated:
		c.CreatedAt, _ = object.DateTimeValue()
	case propCreator:
		c.CreatedBy = kg.AgentID(object.Value())
	case propMetadata:
		c.Metadata = []byte(object.Value())
	case propVersion:
		c.Version = integerValue(object)
	case propScope:
		c.Scope = scopeIDIn(object)
	case propPolicy:
		c.MemberPolicy = MemberPolicy(object.Value())
	case propClosed:
		c.ClosedAt, _ = object.DateTimeValue()
	case propCloseReason:
		c.CloseReason = object.Value()
	case propKeep:
		c.KeepMessages = integerValue(object)
	case propAudit:
		c.Audit = true
	case propExpireAfter:
		c.ExpireAfter, c.expireAfterSetAt = time.Duration(integerValue(object))*time.Millisecond, a.Time
	case propDeleted:
		c.deleted = true
	case propMaxMembers:
		c.MaxMembers = int(integerValue(object))
	case propInvited:
		c.Invited = append(c.invitationsWithout(kg.AgentID(object.Value())), Invitation{kg.AgentID(object.Value()), a.Source, a.Validity.From})
	default:
		if (*restrictions)(&c.Restrictions).applyStatement(property, object, a) {
			return
		}
		if grantee := c.Rights.forProperty(property); grantee != nil {
			*grantee = Grantee(object.Value())
		}
		if n := c.Limits.forProperty(property); n != nil {
			*n = int(integerValue(object))
		}
		if role := roleOf(property); role != "" {
			c.removeStatement(property, object)
			c.Members = append(c.Members, Member{Agent: kg.AgentID(object.Value()), Role: role, Joined: a.Validity.From})
		}
	}
}

// removeStatement removes one statement of the record from the channel.
func (c *Channel) removeStatement(property, object kg.Term) {
	switch property {
	case propName:
		if c.Name == object.Value() {
			c.Name = ""
		}
	case propTopic:
		if c.Topic == object.Value() {
			c.Topic = ""
		}
	case propKeep:
		if c.KeepMessages == integerValue(object) {
			c.KeepMessages = 0
		}
	case propAudit:
		c.Audit = false
	case propExpireAfter:
		if c.ExpireAfter.Milliseconds() == integerValue(object) {
			c.ExpireAfter = 0
		}
	case propMetadata:
		if string(c.Metadata) == object.Value() {
			c.Metadata = nil
		}
	case propMaxMembers:
		if int64(c.MaxMembers) == integerValue(object) {
			c.MaxMembers = 0
		}
	case propInvited:
		c.Invited = c.invitationsWithout(kg.AgentID(object.Value()))
	default:
		if (*restrictions)(&c.Restrictions).removeStatement(property, object) {
			return
		}
		if n := c.Limits.forProperty(property); n != nil && int64(*n) == integerValue(object) {
			*n = 0
		}
		if grantee := c.Rights.forProperty(property); grantee != nil && string(*grantee) == object.Value() {
			*grantee = ""
		}
		if role := roleOf(property); role != "" {
			c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m Member) bool {
				return m.Agent == kg.AgentID(object.Value()) && m.Role == role
			})
		}
	}
}

// sortMembers sorts the members by joining time, then by role (owners first), then by
// agent.
func (c *Channel) sortMembers() {
	slices.SortStableFunc(c.Members, func(a, b Member) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(roleRank(a.Role), roleRank(b.Role)), cmp.Compare(a.Agent, b.Agent))
	})
}
