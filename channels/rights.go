package channels

import (
	"time"

	"koine/kg"
)

// Grantee is a group of agents that a right can be granted to. Each group includes the
// groups before it.
type Grantee string

// Grantees. Observers count as Members only for discovering and reading.
const (
	Owners     Grantee = "owners"
	Moderators Grantee = "moderators"
	Members    Grantee = "members"
	Everybody  Grantee = "everybody"
)

// Rights grants the rights of a channel. "" keeps the default of the channel's kind and
// visibility (see DefaultRights).
type Rights struct {
	// Discover is the right to find the channel, with its name and topic. Readers and
	// invited agents can always find it. For all others it is not found.
	Discover Grantee
	// Join is the right to let agents in. If granted to Everybody, agents can join on
	// their own; otherwise its holders invite.
	Join Grantee
	Read Grantee // messages, members, metadata and facts
	Post Grantee
	// Manage is the right to change name, topic and metadata, to mute, and to ban. Only
	// owners change rights and members, and close or delete the channel.
	Manage Grantee
}

// rights maps the rights to their properties.
var rights = [...]struct {
	name     string
	property kg.Term
	of       func(*Rights) *Grantee
}{
	{"discover", propDiscover, func(r *Rights) *Grantee { return &r.Discover }},
	{"join", propJoin, func(r *Rights) *Grantee { return &r.Join }},
	{"read", propRead, func(r *Rights) *Grantee { return &r.Read }},
	{"post", propPost, func(r *Rights) *Grantee { return &r.Post }},
	{"manage", propManage, func(r *Rights) *Grantee { return &r.Manage }},
}

// DefaultRights returns the default rights for a kind and visibility.
func DefaultRights(kind Kind, visibility Visibility) Rights {
	r := Rights{Discover: Members, Join: Owners, Read: Members, Post: Members, Manage: Moderators}
	if visibility == Public {
		r.Discover, r.Read = Everybody, Everybody
	}
	switch {
	case kind == Room && visibility == Public:
		r.Join, r.Read = Everybody, Members // reading requires joining
	case kind == Room:
		r.Join = Moderators
	case kind == Broadcast:
		r.Post = Owners
		if visibility == Public {
			r.Join = Everybody
		}
	}
	return r
}

// Policy returns the effective rights of the channel, including the defaults.
func (c *Channel) Policy() Rights {
	all := DefaultRights(c.Kind, effectiveVisibility(c.Visibility, c.MemberPolicy))
	if c.MemberPolicy == ByScope && all.Post == Members {
		all.Post = Everybody
	}
	for _, r := range rights {
		if grantee := *r.of(&c.Rights); grantee != "" {
			*r.of(&all) = grantee
		}
	}
	return all
}

// forProperty returns the right of a record property, or nil.
func (r *Rights) forProperty(property kg.Term) *Grantee {
	for _, right := range rights {
		if right.property == property {
			return right.of(r)
		}
	}
	return nil
}

// validateFor validates the rights for a channel with this visibility.
func (r Rights) validateFor(visibility Visibility) error {
	for _, right := range rights {
		grantee := *right.of(&r)
		switch grantee {
		case "", Owners, Moderators, Members:
			continue
		case Everybody:
		default:
			return kg.Errorf(kg.CodeInvalid, "right must be granted to owners, moderators, members or everybody, not to %.60q", grantee).At("rights." + right.name)
		}
		if visibility != Public {
			return kg.Errorf(kg.CodeInvalid, "everybody requires a public channel").At("rights." + right.name)
		}
		if right.name == "manage" {
			return kg.Errorf(kg.CodeInvalid, "manage cannot be granted to everybody").At("rights.manage")
		}
	}
	return nil
}

// includes reports whether the group includes an agent with this role, "" for none.
// Observers count as members if seeing is set, that is for discovering and reading.
func (g Grantee) includes(role Role, seeing bool) bool {
	least := Ordinary
	switch g {
	case Everybody:
		return role != Observer || seeing
	case Owners:
		least = Owner
	case Moderators:
		least = Moderator
	case Members:
		if seeing {
			least = Observer
		}
	}
	return role != "" && roleRank(role) <= roleRank(least)
}

// canDiscover reports whether the agent can find the channel.
func (e *entry) canDiscover(agent kg.AgentID) bool {
	return e.canRead(agent) || e.managedBy(agent) || e != nil && !e.deleted && !e.isRestricted(agent, false) && e.admitsAgent(agent) &&
		(e.policy.Discover.includes(e.roles[agent], true) || e.isInvited(agent) || e.isCreatedBy(agent))
}

// isCreatedBy reports whether the agent created the channel in a scope that it has
// access to, and is not banned.
func (e *entry) isCreatedBy(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.scope != nil && e.CreatedBy == agent && e.admitsAgent(agent) && !e.isRestricted(agent, false)
}

// canRead reports whether the agent can read the channel.
func (e *entry) canRead(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.policy.Read.includes(e.roles[agent], true) && !e.isRestricted(agent, false) && e.admitsAgent(agent)
}

// mustRead returns an error if the agent cannot read the channel.
func (e *entry) mustRead(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return errNoChannel()
	case !e.canRead(agent):
		return errDenied("only %s can read the channel", e.policy.Read.describe())
	}
	return nil
}

// mustPost returns an error if the agent cannot publish.
func (e *entry) mustPost(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return errNoChannel()
	case e.isRestricted(agent, true):
		return errDenied("caller is muted")
	case !e.canPost(agent):
		return errDenied("only %s can publish in the channel", e.policy.Post.describe())
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
		return errDenied("caller is muted")
	}
	if !e.canPost(agent) && !Members.includes(e.roles[agent], false) {
		return errDenied("only members can send signals in the channel")
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
	if !e.policy.Manage.includes(e.roles[agent], false) {
		return errDenied("only %s of the channel can do this", e.policy.Manage.describe())
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
	if e.roles[agent] != Owner {
		return errDenied("only owners of the channel can do this")
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
		return errDenied("caller is muted")
	}
	return nil
}

// mustTakePart returns an error if the agent is not a member.
func (e *entry) mustTakePart(agent kg.AgentID) error {
	if e.roles[agent] == "" {
		return errDenied("only members of the channel can do this")
	}
	return nil
}

// mustInvite returns an error if the agent cannot invite.
func (e *entry) mustInvite(agent kg.AgentID) error {
	grantee := e.policy.Join
	if grantee == Everybody {
		grantee = Members
	}
	if !grantee.includes(e.roles[agent], false) {
		return errDenied("only %s can invite to the channel", grantee.describe())
	}
	return nil
}

// mustBeInvited returns an error if the agent is neither invited nor a member.
func (e *entry) mustBeInvited(agent kg.AgentID) error {
	if e.roles[agent] == "" && !e.isInvited(agent) {
		return errNotInvited()
	}
	return nil
}

// mustBeLetIn returns an error if the agent cannot join.
func (e *entry) mustBeLetIn(agent kg.AgentID) error {
	if e.policy.Join != Everybody && e.mustBeInvited(agent) != nil {
		return errDenied("channel requires an invitation")
	}
	return nil
}

// mustRestrict returns an error if the agent cannot ban and mute the other agent.
// Managers can if the other agent has a lesser role.
func (e *entry) mustRestrict(agent, other kg.AgentID) error {
	if err := e.mustManage(agent); err != nil {
		return err
	}
	if !e.managedBy(agent) && roleRank(e.roles[other]) <= roleRank(e.roles[agent]) {
		return errDenied("%s does not have a lesser role than the caller", other).At("principalId")
	}
	return nil
}

// mustAdminister returns an error if the principal is not an administrator of the
// server.
func mustAdminister(p kg.Principal) error {
	if !p.IsAdmin() {
		return errDenied("only administrators can do this")
	}
	return nil
}

// isRestricted reports whether the agent is banned (or muted), in the channel or in the
// server.
func (e *entry) isRestricted(agent kg.AgentID, muted bool) bool {
	now := e.decisionTime()
	return restrictions(e.Restrictions).appliesTo(agent, muted, now) || e.table.serverRestrictions().appliesTo(agent, muted, now)
}

// decisionTime returns the time at which restrictions are evaluated.
func (e *entry) decisionTime() time.Time {
	if e.decideAt.IsZero() {
		return e.table.now()
	}
	return e.decideAt
}

// mustNotBeBanned returns an error if the agent is banned.
func (c *Channel) mustNotBeBanned(agent kg.AgentID, at time.Time) error {
	if restrictions(c.Restrictions).appliesTo(agent, false, at) {
		return errDenied("%s is banned from the channel", agent).At("principalId")
	}
	return nil
}

// describe returns the group as it appears in errors.
func (g Grantee) describe() string {
	if g == Moderators {
		return "owners and moderators"
	}
	return string(g)
}

// isAddressable reports whether messages in the channel can be addressed to the agent.
func (e *entry) isAddressable(agent kg.AgentID) bool {
	return e.canRead(agent) && (e.roles[agent] != "" || e.MemberPolicy == ByScope)
}

// canPost reports whether the agent can publish.
func (e *entry) canPost(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.policy.Post.includes(e.roles[agent], false) &&
		!e.isRestricted(agent, false) && !e.isRestricted(agent, true) && e.admitsAgent(agent)
}

// isMembersOnly reports whether only members can take part in the channel.
func (e *entry) isMembersOnly() bool { return !e.isPublic() && e.MemberPolicy != ByScope }

// isPublic reports whether everyone can read the channel.
func (e *entry) isPublic() bool { return e != nil && e.scope == nil && e.policy.Read == Everybody }
