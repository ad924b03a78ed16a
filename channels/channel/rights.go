package channel

import (
	"koine/channels/internal/vocab"
	"koine/kg"
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

// rightTable maps the rights to their properties.
var rightTable = [...]struct {
	name     string
	property kg.Term
	of       func(*Rights) *Grantee
}{
	{"discover", vocab.Discover, func(r *Rights) *Grantee { return &r.Discover }},
	{"join", vocab.Join, func(r *Rights) *Grantee { return &r.Join }},
	{"read", vocab.Read, func(r *Rights) *Grantee { return &r.Read }},
	{"post", vocab.Post, func(r *Rights) *Grantee { return &r.Post }},
	{"manage", vocab.Manage, func(r *Rights) *Grantee { return &r.Manage }},
}

// Policy returns the effective rights of the channel, including the defaults.
func (c *Channel) Policy() Rights {
	all := DefaultRights(c.Kind, EffectiveVisibility(c.Visibility, c.MemberPolicy))
	if c.MemberPolicy == ByScope && all.Post == Members {
		all.Post = Everybody
	}
	for _, r := range rightTable {
		if grantee := *r.of(&c.Rights); grantee != "" {
			*r.of(&all) = grantee
		}
	}
	return all
}

// forProperty returns the right of a record property, or nil.
func (r *Rights) forProperty(property kg.Term) *Grantee {
	for _, right := range rightTable {
		if right.property == property {
			return right.of(r)
		}
	}
	return nil
}

// ValidateFor validates the rights for a channel with this visibility.
func (r Rights) ValidateFor(visibility Visibility) error {
	for _, right := range rightTable {
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

// Includes reports whether the group includes an agent with this role, "" for none.
// Observers count as members if seeing is set, that is for discovering and reading.
func (g Grantee) Includes(role Role, seeing bool) bool {
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
	return role != "" && RoleRank(role) <= RoleRank(least)
}

// Describe returns the group as it appears in errors.
func (g Grantee) Describe() string {
	if g == Moderators {
		return "owners and moderators"
	}
	return string(g)
}
