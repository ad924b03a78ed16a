package channels

import (
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/kg"
)

// canDiscover reports whether the agent can find the channel.
func (e *entry) canDiscover(agent kg.AgentID) bool {
	return e.canRead(agent) || e.managedBy(agent) || e != nil && !e.Deleted && !e.isRestricted(agent, false) && e.admitsAgent(agent) &&
		(e.policy.Discover.Includes(e.roles[agent], true) || e.IsInvited(agent) || e.isCreatedBy(agent))
}

// isCreatedBy reports whether the agent created the channel in a scope that it has
// access to, and is not banned.
func (e *entry) isCreatedBy(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.scope != nil && e.CreatedBy == agent && e.admitsAgent(agent) && !e.isRestricted(agent, false)
}

// canRead reports whether the agent can read the channel.
func (e *entry) canRead(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.policy.Read.Includes(e.roles[agent], true) && !e.isRestricted(agent, false) && e.admitsAgent(agent)
}

// mustRead returns an error if the agent cannot read the channel.
func (e *entry) mustRead(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return channel.ErrNotFound()
	case !e.canRead(agent):
		return check.Denied("only %s can read the channel", e.policy.Read.Describe())
	}
	return nil
}

// mustPost returns an error if the agent cannot publish.
func (e *entry) mustPost(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return channel.ErrNotFound()
	case e.isRestricted(agent, true):
		return check.Denied("caller is muted")
	case !e.canPost(agent):
		return check.Denied("only %s can publish in the channel", e.policy.Post.Describe())
	}
	return nil
}

// mustSignal returns an error if the agent cannot send signals. Agents that can publish
// may, and members that can only listen, as in a broadcast.
func (e *entry) mustSignal(agent kg.AgentID) error {
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return check.Denied("caller is muted")
	}
	if !e.canPost(agent) && !channel.Members.Includes(e.roles[agent], false) {
		return check.Denied("only members can send signals in the channel")
	}
	return nil
}

// mustManage returns an error if the agent cannot change the channel's description.
func (e *entry) mustManage(agent kg.AgentID) error {
	if e.managedBy(agent) {
		return nil
	}
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if !e.policy.Manage.Includes(e.roles[agent], false) {
		return check.Denied("only %s of the channel can do this", e.policy.Manage.Describe())
	}
	return nil
}

// mustOwn returns an error if the agent is not an owner.
func (e *entry) mustOwn(agent kg.AgentID) error {
	if e.managedBy(agent) {
		return nil
	}
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.roles[agent] != channel.Owner {
		return check.Denied("only owners of the channel can do this")
	}
	return nil
}

// mustManageMembers returns an error if the agent cannot add and remove members. Owners
// can, and in a scope the creator of the channel, even without a role in it.
func (e *entry) mustManageMembers(agent kg.AgentID) error {
	if e.isCreatedBy(agent) {
		return nil
	}
	return e.mustOwn(agent)
}

// mustRetract returns an error if the agent cannot read the channel or is muted. An
// author can retract its messages even if it can no longer publish.
func (e *entry) mustRetract(agent kg.AgentID) error {
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return check.Denied("caller is muted")
	}
	return nil
}

// mustTakePart returns an error if the agent is not a member.
func (e *entry) mustTakePart(agent kg.AgentID) error {
	if e.roles[agent] == "" {
		return check.Denied("only members of the channel can do this")
	}
	return nil
}

// mustInvite returns an error if the agent cannot invite.
func (e *entry) mustInvite(agent kg.AgentID) error {
	grantee := e.policy.Join
	if grantee == channel.Everybody {
		grantee = channel.Members
	}
	if !grantee.Includes(e.roles[agent], false) {
		return check.Denied("only %s can invite to the channel", grantee.Describe())
	}
	return nil
}

// mustBeInvited returns an error if the agent is neither invited nor a member.
func (e *entry) mustBeInvited(agent kg.AgentID) error {
	if e.roles[agent] == "" && !e.IsInvited(agent) {
		return channel.ErrNotInvited()
	}
	return nil
}

// mustBeLetIn returns an error if the agent cannot join.
func (e *entry) mustBeLetIn(agent kg.AgentID) error {
	if e.policy.Join != channel.Everybody && e.mustBeInvited(agent) != nil {
		return check.Denied("channel requires an invitation")
	}
	return nil
}

// mustRestrict returns an error if the agent cannot ban and mute the other agent.
// Managers can if the other agent has a lesser role.
func (e *entry) mustRestrict(agent, other kg.AgentID) error {
	if err := e.mustManage(agent); err != nil {
		return err
	}
	if !e.managedBy(agent) && channel.RoleRank(e.roles[other]) <= channel.RoleRank(e.roles[agent]) {
		return check.Denied("%s does not have a lesser role than the caller", other).At("principalId")
	}
	return nil
}

// isRestricted reports whether the agent is banned (or muted), in the channel or in the
// server.
func (e *entry) isRestricted(agent kg.AgentID, muted bool) bool {
	now := e.decisionTime()
	return channel.Restrictions(e.Restrictions).AppliesTo(agent, muted, now) || e.table.serverRestrictions().AppliesTo(agent, muted, now)
}

// decisionTime returns the time at which restrictions are evaluated.
func (e *entry) decisionTime() time.Time {
	if e.decideAt.IsZero() {
		return e.table.now()
	}
	return e.decideAt
}

// isAddressable reports whether messages in the channel can be addressed to the agent.
func (e *entry) isAddressable(agent kg.AgentID) bool {
	return e.canRead(agent) && (e.roles[agent] != "" || e.MemberPolicy == channel.ByScope)
}

// canPost reports whether the agent can publish.
func (e *entry) canPost(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.policy.Post.Includes(e.roles[agent], false) &&
		!e.isRestricted(agent, false) && !e.isRestricted(agent, true) && e.admitsAgent(agent)
}

// isMembersOnly reports whether only members can take part in the channel.
func (e *entry) isMembersOnly() bool { return !e.isPublic() && e.MemberPolicy != channel.ByScope }

// isPublic reports whether everyone can read the channel.
func (e *entry) isPublic() bool {
	return e != nil && e.scope == nil && e.policy.Read == channel.Everybody
}
