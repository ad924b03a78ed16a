package channels

import (
	"time"

	"koine/kg"
)

// Grantee says to whom a right is given. Each includes those before it.
type Grantee string

// Whom a right can be given to. Members are those who post: observers are counted
// among them where it is about discovering and reading, and nowhere else.
const (
	Owners     Grantee = "owners"
	Moderators Grantee = "moderators"
	Members    Grantee = "members"
	Everybody  Grantee = "everybody"
)

// Rights says who may do what in a channel. "" leaves a right as it is for
// channels of that kind and visibility (see DefaultRights).
type Rights struct {
	// Discover is to find the channel: its name and topic. Who may read it knows of
	// it in any case, and so does who is invited; for all others it is not there.
	Discover Grantee
	// Join is to let agents in. Where it is given to everybody, they let themselves
	// in; else those who have it invite.
	Join Grantee
	Read Grantee // messages, members, metadata and facts
	Post Grantee
	// Manage is to change name, topic and metadata, to mute and to ban. Rights,
	// members and the end of the channel are matters of its owners.
	Manage Grantee
}

// rights pairs the rights with the properties that say who has them.
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

// DefaultRights are those of a channel of which nothing else is said.
func DefaultRights(kind Kind, visibility Visibility) Rights {
	r := Rights{Discover: Members, Join: Owners, Read: Members, Post: Members, Manage: Moderators}
	if visibility == Public {
		r.Discover, r.Read = Everybody, Everybody
	}
	switch {
	case kind == Room && visibility == Public:
		r.Join, r.Read = Everybody, Members // one joins to read
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

// Policy is who may do what in the channel, defaults included.
func (c *Channel) Policy() Rights {
	all := DefaultRights(c.Kind, effectiveVisibility(c.Visibility, c.MemberPolicy))
	if c.MemberPolicy == ByScope && all.Post == Members {
		all.Post = Everybody
	}
	for _, r := range rights {
		if who := *r.of(&c.Rights); who != "" {
			*r.of(&all) = who
		}
	}
	return all
}

// forProperty is the right that a property of a channel's record gives, nil for another
// property.
func (r *Rights) forProperty(property kg.Term) *Grantee {
	for _, right := range rights {
		if right.property == property {
			return right.of(r)
		}
	}
	return nil
}

// validateFor refuses rights that a channel of the visibility cannot have.
func (r Rights) validateFor(visibility Visibility) error {
	for _, right := range rights {
		who := *right.of(&r)
		switch who {
		case "", Owners, Moderators, Members:
			continue
		case Everybody:
		default:
			return kg.Errorf(kg.CodeInvalid, "a right is given to owners, moderators, members or everybody, not to %.60q", who).At("rights." + right.name)
		}
		if visibility != Public {
			return kg.Errorf(kg.CodeInvalid, "a private channel is there for its members only").At("rights." + right.name)
		}
		if right.name == "manage" {
			return kg.Errorf(kg.CodeInvalid, "not everybody can manage a channel").At("rights.manage")
		}
	}
	return nil
}

// includes tells whether one of this role, "" for none, has what is given to these.
// Observers are among the members where it is about seeing.
func (w Grantee) includes(role Role, seeing bool) bool {
	least := Ordinary
	switch w {
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

// canDiscover tells whether the channel is there for the agent.
func (e *entry) canDiscover(agent kg.AgentID) bool {
	return e.canRead(agent) || e.managedBy(agent) || e != nil && !e.deleted && !e.isRestricted(agent, false) && e.admitsAgent(agent) &&
		(e.policy.Discover.includes(e.roles[agent], true) || e.isInvited(agent) || e.isCreatedBy(agent))
}

// isCreatedBy tells whether the agent has made the channel, in a scope that it has access
// to, and is not banned.
func (e *entry) isCreatedBy(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.scope != nil && e.CreatedBy == agent && e.admitsAgent(agent) && !e.isRestricted(agent, false)
}

// canRead tells whether the agent may read the channel.
func (e *entry) canRead(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.policy.Read.includes(e.roles[agent], true) && !e.isRestricted(agent, false) && e.admitsAgent(agent)
}

// mustRead refuses who may not read the channel.
func (e *entry) mustRead(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return errNoChannel()
	case !e.canRead(agent):
		return errDenied("only %s of the channel read it", e.policy.Read.describe())
	}
	return nil
}

// mustPost refuses who may not publish.
func (e *entry) mustPost(agent kg.AgentID) error {
	switch {
	case !e.canDiscover(agent):
		return errNoChannel()
	case e.isRestricted(agent, true):
		return errDenied("you are muted")
	case !e.canPost(agent):
		return errDenied("only %s publish in the channel", e.policy.Post.describe())
	}
	return nil
}

// mustSignal refuses who may not send signals: as who may not publish, but for
// members who listen only, such as those of a broadcast.
func (e *entry) mustSignal(agent kg.AgentID) error {
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return errDenied("you are muted")
	}
	if !e.canPost(agent) && !Members.includes(e.roles[agent], false) {
		return errDenied("only members send signals in the channel")
	}
	return nil
}

// mustManage refuses who may not change what the channel says of itself.
func (e *entry) mustManage(agent kg.AgentID) error {
	if e.managedBy(agent) {
		return nil
	}
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if !e.policy.Manage.includes(e.roles[agent], false) {
		return errDenied("only %s of the channel may do this", e.policy.Manage.describe())
	}
	return nil
}

// mustOwn refuses who is no owner.
func (e *entry) mustOwn(agent kg.AgentID) error {
	if e.managedBy(agent) {
		return nil
	}
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.roles[agent] != Owner {
		return errDenied("only owners of the channel may do this")
	}
	return nil
}

// mustManageMembers refuses who does not say who is a member: owners do, and in a scope
// who made the channel, whatever role is left of that, if any.
func (e *entry) mustManageMembers(agent kg.AgentID) error {
	if e.isCreatedBy(agent) {
		return nil
	}
	return e.mustOwn(agent)
}

// mustRetract refuses who may not read the channel or is muted: who has published
// there takes it back, also where it does not publish any more.
func (e *entry) mustRetract(agent kg.AgentID) error {
	if err := e.mustRead(agent); err != nil {
		return err
	}
	if e.isRestricted(agent, true) {
		return errDenied("you are muted")
	}
	return nil
}

// mustTakePart refuses who is no member.
func (e *entry) mustTakePart(agent kg.AgentID) error {
	if e.roles[agent] == "" {
		return errDenied("only members of the channel may do this")
	}
	return nil
}

// mustInvite refuses who may let nobody else in.
func (e *entry) mustInvite(agent kg.AgentID) error {
	who := e.policy.Join
	if who == Everybody {
		who = Members
	}
	if !who.includes(e.roles[agent], false) {
		return errDenied("only %s invite to the channel", who.describe())
	}
	return nil
}

// mustBeInvited refuses who is neither invited nor a member.
func (e *entry) mustBeInvited(agent kg.AgentID) error {
	if e.roles[agent] == "" && !e.isInvited(agent) {
		return errNotInvited()
	}
	return nil
}

// mustBeLetIn refuses who may not join.
func (e *entry) mustBeLetIn(agent kg.AgentID) error {
	if e.policy.Join != Everybody && e.mustBeInvited(agent) != nil {
		return errDenied("one joins the channel by invitation")
	}
	return nil
}

// mustRestrict refuses who may not ban and mute another: those who manage the channel
// may where its role is less than theirs.
func (e *entry) mustRestrict(agent, other kg.AgentID) error {
	if err := e.mustManage(agent); err != nil {
		return err
	}
	if !e.managedBy(agent) && roleRank(e.roles[other]) <= roleRank(e.roles[agent]) {
		return errDenied("%s is not of a lesser role than you", other).At("principalId")
	}
	return nil
}

// mustAdminister refuses who is no administrator of the server.
func mustAdminister(p kg.Principal) error {
	if !p.IsAdmin() {
		return errDenied("only administrators may do this")
	}
	return nil
}

// isRestricted tells whether the agent is banned, or muted, here or everywhere.
func (e *entry) isRestricted(agent kg.AgentID, muted bool) bool {
	now := e.decisionTime()
	return restrictions(e.Restrictions).appliesTo(agent, muted, now) || e.table.serverRestrictions().appliesTo(agent, muted, now)
}

// decisionTime is the time by which is decided.
func (e *entry) decisionTime() time.Time {
	if e.decideAt.IsZero() {
		return e.table.now()
	}
	return e.decideAt
}

// mustNotBeBanned refuses to let an agent in that is banned.
func (c *Channel) mustNotBeBanned(agent kg.AgentID, at time.Time) error {
	if restrictions(c.Restrictions).appliesTo(agent, false, at) {
		return errDenied("%s is banned from the channel", agent).At("principalId")
	}
	return nil
}

// describe lists who they are.
func (w Grantee) describe() string {
	if w == Moderators {
		return "owners and moderators"
	}
	return string(w)
}

// isAddressable tells whether a message in the channel may be addressed to the agent.
func (e *entry) isAddressable(agent kg.AgentID) bool {
	return e.canRead(agent) && (e.roles[agent] != "" || e.MemberPolicy == ByScope)
}

// canPost tells whether the agent may publish.
func (e *entry) canPost(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.policy.Post.includes(e.roles[agent], false) &&
		!e.isRestricted(agent, false) && !e.isRestricted(agent, true) && e.admitsAgent(agent)
}

// isMembersOnly tells whether nobody takes part in the channel without being a member.
func (e *entry) isMembersOnly() bool { return !e.isPublic() && e.MemberPolicy != ByScope }

// isPublic tells whether everybody reads the channel.
func (e *entry) isPublic() bool { return e != nil && e.scope == nil && e.policy.Read == Everybody }
