package access

import (
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/scope"
	"koine/kg"
)

// RoleOf returns the role of an agent in the channel, or "" if it is not a member.
func (e *Entry) RoleOf(agent kg.AgentID) channel.Role { return e.roles[agent] }

// IsWithin reports whether the channel belongs to the scope or to a task of it.
func (e *Entry) IsWithin(id scope.ID) bool {
	return e.Scope != "" && (e.Scope == id || e.scope.get().Parent == id)
}

// Scopes returns the scope of the channel and the intent of that scope.
func (e *Entry) Scopes() (ids []scope.ID) {
	for s := e.scope.get(); s != nil; s = s.parent.get() {
		ids = append(ids, s.ID)
	}
	return ids
}

// GrantsReadToAll reports whether everyone may read the channel that has access to its
// scope, if it has one.
func (e *Entry) GrantsReadToAll() bool { return e.effective.Read == channel.Everybody }

// CanDiscover reports whether the agent can find the channel.
func (e *Entry) CanDiscover(agent kg.AgentID) bool {
	return e.CanRead(agent) || e.ManagedBy(agent) || e != nil && !e.Deleted && !e.isRestricted(agent, false) && e.AdmitsAgent(agent) &&
		(e.effective.Discover.Includes(e.roles[agent], true) || e.IsInvited(agent) || e.isCreatedBy(agent))
}

// isCreatedBy reports whether the agent created the channel in a scope that it has
// access to, and is not banned.
func (e *Entry) isCreatedBy(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.scope != nil && e.CreatedBy == agent && e.AdmitsAgent(agent) && !e.isRestricted(agent, false)
}

// CanRead reports whether the agent can read the channel.
func (e *Entry) CanRead(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.effective.Read.Includes(e.roles[agent], true) && !e.isRestricted(agent, false) && e.AdmitsAgent(agent)
}

// MustRead returns an error if the agent cannot read the channel.
func (e *Entry) MustRead(agent kg.AgentID) error {
	switch {
	case !e.CanDiscover(agent):
		return e.errHidden(agent)
	case !e.CanRead(agent):
		return check.Denied("only %s can read the channel", e.effective.Read.Describe())
	}
	return nil
}

// MustPost returns an error if the agent cannot publish.
func (e *Entry) MustPost(agent kg.AgentID) error {
	switch {
	case !e.CanDiscover(agent):
		return e.errHidden(agent)
	case e.isRestricted(agent, true):
		return check.Denied("caller is muted")
	case !e.mayWrite(agent):
		return e.mustWrite(agent)
	case !e.CanPost(agent):
		return check.Denied("only %s can publish in the channel", e.effective.Post.Describe())
	}
	return nil
}

// MustSignal returns an error if the agent cannot send signals. Agents that can publish
// may, and members that can only listen, as in a broadcast.
func (e *Entry) MustSignal(agent kg.AgentID) error {
	if err := e.MustRead(agent); err != nil {
		return err
	}
	if err := e.mustWrite(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return check.Denied("caller is muted")
	}
	if !e.CanPost(agent) && !channel.Members.Includes(e.roles[agent], false) {
		return check.Denied("only members can send signals in the channel")
	}
	return nil
}

// MustManage returns an error if the agent cannot change the channel's description.
func (e *Entry) MustManage(agent kg.AgentID) error {
	if e.ManagedBy(agent) {
		return nil
	}
	if err := e.MustRead(agent); err != nil {
		return err
	}
	if err := e.mustWrite(agent); err != nil {
		return err
	}
	if !e.effective.Manage.Includes(e.roles[agent], false) {
		return check.Denied("only %s of the channel can do this", e.effective.Manage.Describe())
	}
	return nil
}

// MustOwn returns an error if the agent is not an owner.
func (e *Entry) MustOwn(agent kg.AgentID) error {
	if e.ManagedBy(agent) {
		return nil
	}
	if err := e.MustRead(agent); err != nil {
		return err
	}
	if err := e.mustWrite(agent); err != nil {
		return err
	}
	if e.roles[agent] != channel.Owner {
		return check.Denied("only owners of the channel can do this")
	}
	return nil
}

// MustManageMembers returns an error if the agent cannot add and remove members. Owners
// can, and in a scope the creator of the channel, even without a role in it.
func (e *Entry) MustManageMembers(agent kg.AgentID) error {
	if e.isCreatedBy(agent) && e.mayWrite(agent) {
		return nil
	}
	return e.MustOwn(agent)
}

// MustRetract returns an error if the agent cannot read the channel or is muted. An
// author can retract its messages even if it can no longer publish.
func (e *Entry) MustRetract(agent kg.AgentID) error {
	if err := e.MustRead(agent); err != nil {
		return err
	}
	if err := e.mustWrite(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return check.Denied("caller is muted")
	}
	return nil
}

// MustTakePart returns an error if the agent is not a member.
func (e *Entry) MustTakePart(agent kg.AgentID) error {
	if e.roles[agent] == "" {
		return check.Denied("only members of the channel can do this")
	}
	return nil
}

// MustInvite returns an error if the agent cannot invite.
func (e *Entry) MustInvite(agent kg.AgentID) error {
	if err := e.mustWrite(agent); err != nil {
		return err
	}
	grantee := e.effective.Join
	if grantee == channel.Everybody {
		grantee = channel.Members
	}
	if !grantee.Includes(e.roles[agent], false) {
		return check.Denied("only %s can invite to the channel", grantee.Describe())
	}
	return nil
}

// MustBeInvited returns an error if the agent is neither invited nor a member.
func (e *Entry) MustBeInvited(agent kg.AgentID) error {
	if e.roles[agent] == "" && !e.IsInvited(agent) {
		return channel.ErrNotInvited()
	}
	return nil
}

// MustBeLetIn returns an error if the agent cannot join.
func (e *Entry) MustBeLetIn(agent kg.AgentID) error {
	if e.effective.Join != channel.Everybody && e.MustBeInvited(agent) != nil {
		return check.Denied("channel requires an invitation")
	}
	return nil
}

// MustRestrict returns an error if the agent cannot ban and mute the other agent.
// Managers can if the other agent has a lesser role.
func (e *Entry) MustRestrict(agent, other kg.AgentID) error {
	if err := e.MustManage(agent); err != nil {
		return err
	}
	if !e.ManagedBy(agent) && channel.RoleRank(e.roles[other]) <= channel.RoleRank(e.roles[agent]) {
		return check.Denied("%s does not have a lesser role than the caller", other).At("principalId")
	}
	return nil
}

// isRestricted reports whether the agent is banned (or muted), in the channel or in the
// server.
func (e *Entry) isRestricted(agent kg.AgentID, muted bool) bool {
	now := e.decisionTime()
	return channel.Restrictions(e.Restrictions).AppliesTo(agent, muted, now) || e.table.ServerRestrictions().AppliesTo(agent, muted, now)
}

// decisionTime returns the time at which restrictions are evaluated.
func (e *Entry) decisionTime() time.Time {
	if e.decideAt.IsZero() {
		return e.table.now()
	}
	return e.decideAt
}

// IsAddressable reports whether messages in the channel can be addressed to the agent.
func (e *Entry) IsAddressable(agent kg.AgentID) bool {
	return e.CanRead(agent) && (e.roles[agent] != "" || e.MemberPolicy == channel.ByScope)
}

// CanPost reports whether the agent can publish.
func (e *Entry) CanPost(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.effective.Post.Includes(e.roles[agent], false) &&
		!e.isRestricted(agent, false) && !e.isRestricted(agent, true) && e.mayWrite(agent)
}

// IsMembersOnly reports whether only members can take part in the channel.
func (e *Entry) IsMembersOnly() bool { return !e.IsPublic() && e.MemberPolicy != channel.ByScope }

// IsPublic reports whether everyone can read the channel.
func (e *Entry) IsPublic() bool {
	return e != nil && e.scope == nil && e.effective.Read == channel.Everybody
}

// Outline returns the part of the channel that is visible without read access.
func (e *Entry) Outline() *channel.Channel {
	return &channel.Channel{
		ID: e.ID, Kind: e.Kind, Name: e.Name, Topic: e.Topic, Visibility: e.Visibility, CreatedAt: e.CreatedAt,
		KeepMessages: e.KeepMessages, Audit: e.Audit, ExpireAfter: e.ExpireAfter, ExpireAfterSetAt: e.ExpireAfterSetAt, ClosedAt: e.ClosedAt, CloseReason: e.CloseReason,
		Scope: e.Scope, MemberPolicy: e.MemberPolicy, Rights: e.Rights, MaxMembers: e.MaxMembers, Version: e.Version,
	}
}

// AsPrincipal returns the entry as seen by a principal, which brings its roles.
func (e *Entry) AsPrincipal(p kg.Principal) *Entry {
	if e == nil || e.scope == nil && !e.table.IsOverseer(p) {
		return e
	}
	return e.askedBy(p)
}

// askedBy is a function of its own because its argument is on the heap, whether it is called
// or not.
//
//go:noinline
func (e *Entry) askedBy(p kg.Principal) *Entry {
	asked := *e
	asked.caller = &p
	return &asked
}

// AdmitsAgent reports whether the agent has access to the channel's scope, if it has
// one. The roles of an agent other than the requesting principal are not considered.
func (e *Entry) AdmitsAgent(agent kg.AgentID) bool {
	if e.scope == nil {
		return true
	}
	return e.levelFor(agent) != ""
}

// levelFor returns the agent's level of access to the channel's scope, and scope.Admin for
// a channel without a scope, which has all rights in its record. The roles of an agent
// other than the requesting principal are not considered.
func (e *Entry) levelFor(agent kg.AgentID) scope.Level {
	if e.scope == nil {
		return scope.Admin
	}
	p := kg.Principal{ID: agent}
	if e.caller != nil && e.caller.ID == agent {
		p = *e.caller
	}
	return e.scope.get().levelAt(p, e.decisionTime)
}

// mayWrite reports whether the agent's level of access to the channel's scope allows more
// than reading it.
func (e *Entry) mayWrite(agent kg.AgentID) bool { return e.levelFor(agent).Includes(scope.Write) }

// mustWrite returns an error if the agent's level of access to the scope allows reading
// only.
func (e *Entry) mustWrite(agent kg.AgentID) error {
	if !e.mayWrite(agent) {
		return check.Denied("caller has read access to the scope only")
	}
	return nil
}

// ManagedBy reports whether the agent manages the channel as a manager of its scope or of
// the intent of its task. Managing through a task requires access to the intent, like
// everything else.
func (e *Entry) ManagedBy(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.scope != nil && e.levelFor(agent) == scope.Admin && !e.table.ServerRestrictions().AppliesTo(agent, false, e.decisionTime())
}
