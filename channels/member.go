package channels

import (
	"time"

	"koine/kg"
)

// Role is the role of a member (channels extension, section 4.2).
type Role string

// Roles. The rights of the channel determine what each role may do. Owners have all
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
}{{Owner, propOwner}, {Moderator, propModerator}, {Ordinary, propMember}, {Observer, propObserver}}

// Member is a participant of a channel.
type Member struct {
	Agent  kg.AgentID
	Role   Role
	Joined time.Time
}

// roleOf returns the role of a member property, or "" for another property.
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

// parseRole validates a role; "" is Ordinary.
func parseRole(role Role) (Role, error) {
	if role == "" {
		return Ordinary, nil
	}
	if propertyOf(role).IsZero() {
		return "", kg.Errorf(kg.CodeInvalid, "role must be owner, moderator, member or observer, not %.60q", role).At("role")
	}
	return role, nil
}

// roleRank returns the rank of a role; the role with the most rights has rank 0.
func roleRank(role Role) int {
	for i, r := range roles {
		if r.role == role {
			return i
		}
	}
	return len(roles)
}
