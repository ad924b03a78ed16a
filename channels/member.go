package channels

import (
	"time"

	"koine/kg"
)

// Role is what a member may do (channels extension, section 4.2).
type Role string

// The roles. What each may do is said by the rights of the channel; owners may do
// everything, and observers never publish.
const (
	Owner     Role = "owner"
	Moderator Role = "moderator"
	Ordinary  Role = "member"
	Observer  Role = "observer"
)

// roles pairs the roles with the properties under which members have them.
var roles = [...]struct {
	role     Role
	property kg.Term
}{{Owner, propOwner}, {Moderator, propModerator}, {Ordinary, propMember}, {Observer, propObserver}}

// Member is one who takes part in a channel.
type Member struct {
	Agent  kg.AgentID
	Role   Role
	Joined time.Time
}

// roleOf is the role that a property gives, "" for another property.
func roleOf(property kg.Term) Role {
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

// parseRole reads a role; "" stands for Ordinary.
func parseRole(role Role) (Role, error) {
	if role == "" {
		return Ordinary, nil
	}
	if propertyOf(role).IsZero() {
		return "", kg.Errorf(kg.CodeInvalid, "a member is an owner, a moderator, a member or an observer, not %.60q", role).At("role")
	}
	return role, nil
}

// roleRank orders the roles, that with the most rights first.
func roleRank(role Role) int {
	for i, r := range roles {
		if r.role == role {
			return i
		}
	}
	return len(roles)
}
