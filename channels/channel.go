package channels

import (
	"cmp"
	"slices"
	"time"

	"koine/kg"
)

// Visibility says who may read a channel.
type Visibility string

// The visibilities. A private channel is there for its members only.
const (
	Private Visibility = "private"
	Public  Visibility = "public"
)

// Kind says what sort of channel it is.
type Kind string

// The kinds.
const (
	Ordered   Kind = "channel"   // what the channels extension knows
	Direct    Kind = "direct"    // of exactly two agents
	Broadcast Kind = "broadcast" // owners publish, the others read
	Room      Kind = "room"      // whoever finds it enters, and reads from then on
)

// Channel is a conversation. Not to be changed by who gets it.
type Channel struct {
	ID         ChannelID
	Kind       Kind
	Name       string
	Topic      string
	Visibility Visibility
	CreatedAt  time.Time
	CreatedBy  kg.AgentID
	// Members in the order in which they joined.
	Members      []Member
	Invited      []Invitation
	Restrictions []Restriction // those that have ended included, until the next one
	Metadata     []byte        // a JSON object, nil for none
	// Rights are those that the channel has of its own; Policy adds the others.
	Rights Rights
	// MaxMembers bounds the members; 0 for the server's bound.
	MaxMembers int
	// Limits are what the channel bounds of its own.
	Limits Limits
	// Scope is what the channel belongs to, "" for nothing; MemberPolicy says who takes
	// part in it there.
	Scope        ScopeID
	MemberPolicy MemberPolicy
	// ExpireAfter is how long after its last message the channel closes by itself; 0
	// for never.
	ExpireAfter      time.Duration
	expireAfterSetAt time.Time // when that was said
	// KeepMessages is how many messages keep their content, the newest; 0 for all.
	KeepMessages int64
	// Audit tells that each message is copied to the events of the scope.
	Audit bool
	// ClosedAt and CloseReason are of a channel that takes no message any more; the
	// zero time for one that is open.
	ClosedAt    time.Time
	CloseReason string
	// Version is 1 at first and goes up with each change of name, topic, metadata,
	// rights and membership.
	Version int64
	// Messages is how many were ever published, and so the sequence of the last.
	Messages int64
	// LastMessageAt is when that was; the zero time without one.
	LastMessageAt time.Time
	// Replayed tells that Create found the channel under its idempotency key.
	Replayed bool

	deleted bool
}

// memberRole is the role of an agent, "" for one that is no member.
func (c *Channel) memberRole(agent kg.AgentID) Role {
	for i := range c.Members {
		if c.Members[i].Agent == agent {
			return c.Members[i].Role
		}
	}
	return ""
}

// ownerCount counts the owners.
func (c *Channel) ownerCount() (n int) {
	for i := range c.Members {
		if c.Members[i].Role == Owner {
			n++
		}
	}
	return n
}

// applyStatement takes one statement of the channel's record in.
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
		if who := c.Rights.forProperty(property); who != nil {
			*who = Grantee(object.Value())
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

// removeStatement takes one statement of the channel's record out.
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
		if who := c.Rights.forProperty(property); who != nil && string(*who) == object.Value() {
			*who = ""
		}
		if role := roleOf(property); role != "" {
			c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m Member) bool {
				return m.Agent == kg.AgentID(object.Value()) && m.Role == role
			})
		}
	}
}

// sortMembers sorts the members by when they joined, the owners first of those who
// joined together.
func (c *Channel) sortMembers() {
	slices.SortStableFunc(c.Members, func(a, b Member) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(roleRank(a.Role), roleRank(b.Role)), cmp.Compare(a.Agent, b.Agent))
	})
}
