package channel

import (
	"cmp"
	"slices"
	"time"

	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// Member is a participant of a channel.
type Member struct {
	Agent  kg.AgentID
	Role   Role
	Joined time.Time
}

// Role is the role of a member (channels extension, section 4.2).
type Role string

// Roles. The rights of the channel determine the rights of each role. Owners have all
// rights; observers never publish.
const (
	Owner     Role = "owner"
	Moderator Role = "moderator"
	Ordinary  Role = "member"
	Observer  Role = "observer"
)

// roles maps each role to the property of its members.
var roles = [...]struct {
	role     Role
	property kg.Term
}{{Owner, vocab.Owner}, {Moderator, vocab.Moderator}, {Ordinary, vocab.Member}, {Observer, vocab.Observer}}

// RoleOf returns the role of a member property, or "" for another property.
func RoleOf(property kg.Term) Role {
	for _, r := range roles {
		if r.property == property {
			return r.role
		}
	}
	return ""
}

func propertyOf(role Role) kg.Term {
	for _, r := range roles {
		if r.role == role {
			return r.property
		}
	}
	return kg.Term{}
}

// ParseRole validates a role; "" is Ordinary.
func ParseRole(role Role) (Role, error) {
	if role == "" {
		return Ordinary, nil
	}
	if propertyOf(role).IsZero() {
		return "", kg.Errorf(kg.CodeInvalid, "role must be owner, moderator, member or observer, not %.60q", role).At("role")
	}
	return role, nil
}

// RoleRank returns the rank of a role; the role with the most rights has rank 0.
func RoleRank(role Role) int {
	for i, r := range roles {
		if r.role == role {
			return i
		}
	}
	return len(roles)
}

// MemberRole returns the role of an agent, or "" if it is not a member.
func (c *Channel) MemberRole(agent kg.AgentID) Role {
	for i := range c.Members {
		if c.Members[i].Agent == agent {
			return c.Members[i].Role
		}
	}
	return ""
}

func (c *Channel) OwnerCount() (n int) {
	for i := range c.Members {
		if c.Members[i].Role == Owner {
			n++
		}
	}
	return n
}

// SortMembers sorts members by joining time, then by role (owners first), then by
// agent.
func SortMembers(members []Member) {
	slices.SortStableFunc(members, func(a, b Member) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(RoleRank(a.Role), RoleRank(b.Role)), cmp.Compare(a.Agent, b.Agent))
	})
}

// Invitation lets an agent find a channel and join it.
type Invitation struct {
	Agent, By kg.AgentID
	At        time.Time
}

// IsInvited reports whether the agent has an invitation.
func (c *Channel) IsInvited(agent kg.AgentID) bool {
	return slices.ContainsFunc(c.Invited, func(i Invitation) bool { return i.Agent == agent })
}

// invitationsWithout returns the invitations of all other agents.
func (c *Channel) invitationsWithout(agent kg.AgentID) []Invitation {
	return slices.DeleteFunc(slices.Clone(c.Invited), func(i Invitation) bool { return i.Agent == agent })
}

// Overseer is an agent that reads a channel without taking part, since its first read.
type Overseer struct {
	Agent kg.AgentID
	Since time.Time
}

// Overseers are the overseers of a channel.
type Overseers []Overseer

// Include reports whether the agent is one of them.
func (l Overseers) Include(agent kg.AgentID) bool {
	return slices.ContainsFunc(l, func(o Overseer) bool { return o.Agent == agent })
}

func ParseMember(agent kg.AgentID) (kg.AgentID, error) {
	if agent == "" {
		return "", kg.Errorf(kg.CodeInvalid, "principalId is missing").At("principalId")
	}
	agent = kg.CanonicalAgent(string(agent))
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("principalId")
	}
	return agent, nil
}

// NextOwner returns the member that becomes owner if there is none.
func (c *Channel) NextOwner() Member {
	for _, role := range []Role{Moderator, Ordinary, Observer} {
		for _, m := range c.Members { // sorted by joining time
			if m.Role == role {
				return m
			}
		}
	}
	return Member{}
}

// CheckNotBanned returns an error if the agent is banned.
func (c *Channel) CheckNotBanned(agent kg.AgentID, at time.Time) error {
	if Restrictions(c.Restrictions).AppliesTo(agent, false, at) {
		return check.Denied("%s is banned from the channel", agent).At("principalId")
	}
	return nil
}

// MemberPatterns match the statements that make the agent a member of a channel.
func MemberPatterns(agent kg.AgentID) (out []kg.Pattern) {
	for _, r := range roles {
		out = append(out, kg.Pattern{Predicate: r.property, Object: kg.IRI(string(agent))})
	}
	return out
}
