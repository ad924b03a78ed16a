package channels

import (
	"context"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/agents"
	"koine/kg"
)

// Members is the part of the service for membership: members, the
// invited, the banned and the muted.
type Members struct{ service *Service }

// Add adds a member or changes a member's role. It requires an owner or, in a
// scope, the creator of the channel.
//
// Errors: CodeLastOwner if no owner would remain; CodeLimitExceeded if the channel is
// full; CodePermissionDenied, also for direct channels.
func (m *Members) Add(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID, role channel.Role) (*channel.Channel, error) {
	agent, err := channel.ParseMember(agent)
	if err != nil {
		return nil, err
	}
	if role, err = channel.ParseRole(role); err != nil {
		return nil, err
	}
	return m.service.alterChannel(ctx, by, id, "channels/addMember", (*access.Entry).MustManageMembers, func(w *channel.Writer, c *channel.Channel) error {
		at := slices.IndexFunc(c.Members, func(m channel.Member) bool { return m.Agent == agent })
		if at < 0 {
			return m.addMember(w, c, channel.Member{Agent: agent, Role: role})
		}
		m := &c.Members[at]
		if m.Role == role {
			return nil
		}
		if m.Role == channel.Owner && role != channel.Owner && c.OwnerCount() == 1 {
			return errLastOwner()
		}
		w.RemoveMember(*m)
		m.Role = role
		w.AddMember(*m)
		return nil
	})
}

// Remove removes a member. It requires the right to add members, or the member
// itself. A member that would keep access through the scope cannot be removed, because
// that would change nothing for it.
//
// Errors: CodeNotFound if the agent is not a member; CodeLastOwner; CodeInvalid if the
// agent would keep access; CodePermissionDenied.
func (m *Members) Remove(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID) (*channel.Channel, error) {
	agent, err := channel.ParseMember(agent)
	if err != nil {
		return nil, err
	}
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	must := (*access.Entry).MustManageMembers
	if self == agent {
		must = (*access.Entry).MustTakePart
	}
	return m.service.alterChannel(ctx, by, id, "channels/removeMember", must, func(w *channel.Writer, c *channel.Channel) error {
		at := slices.IndexFunc(c.Members, func(m channel.Member) bool { return m.Agent == agent })
		if at < 0 {
			return kg.Errorf(kg.CodeNotFound, "%s is not a member", agent).At("principalId")
		}
		if c.Members[at].Role == channel.Owner && c.OwnerCount() == 1 {
			return errLastOwner()
		}
		if self != agent && c.MemberPolicy == channel.ByScope {
			e, err := m.entryForAgent(w.Tx, id, agent)
			if err != nil {
				return err
			}
			if e.GrantsReadToAll() && e.CanRead(agent) {
				return errStaysByScope(agent)
			}
		}
		w.RemoveMember(c.Members[at])
		c.Members = slices.Delete(c.Members, at, at+1)
		return nil
	})
}

// Join makes the caller a member: Ordinary (the default) or Observer. It requires an
// invitation unless Rights.Join is Everybody. Joining again has no effect.
//
// Errors: CodeChannelNotFound if the caller cannot find the channel;
// CodePermissionDenied without an invitation; CodeLimitExceeded if the channel is full.
func (m *Members) Join(ctx context.Context, by Caller, id channel.ID, role channel.Role) (*channel.Channel, error) {
	switch role {
	case "":
		role = channel.Ordinary
	case channel.Ordinary, channel.Observer:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "role must be member or observer, not %.60q", role).At("role")
	}
	return m.joinChannel(ctx, by, id, role, "channels/join", (*access.Entry).MustBeLetIn)
}

// Leave removes the caller from a channel.
//
// Errors: CodeLastOwner; CodePermissionDenied if the caller is not a member.
func (m *Members) Leave(ctx context.Context, by Caller, id channel.ID) error {
	agent, err := by.ActingAgent()
	if err != nil {
		return err
	}
	_, err = m.Remove(ctx, by, id, agent)
	return err
}

// Invite lets an agent find the channel and become a member. It requires the right
// Rights.Join; if everyone has that right, it requires membership. Inviting an invited
// agent or a member has no effect. The agent need not be known to the server unless the
// channel is in a scope.
//
// Errors: CodePermissionDenied, also for a banned agent; CodeNotMember for an agent
// without access to the scope of the channel; CodeLimitExceeded above
// Options.MaxInvitations.
func (m *Members) Invite(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID) error {
	agent, err := channel.ParseMember(agent)
	if err != nil {
		return err
	}
	_, err = m.service.alterChannel(ctx, by, id, "channels/invite", (*access.Entry).MustInvite, func(w *channel.Writer, c *channel.Channel) error {
		if c.MemberRole(agent) != "" || c.IsInvited(agent) {
			return nil // no effect
		}
		if err := c.CheckNotBanned(agent, w.Tx.Time()); err != nil {
			return err
		}
		if e, err := m.entryForAgent(w.Tx, id, agent); err != nil {
			return err
		} else if !e.AdmitsAgent(agent) {
			return errOutOfScope(agent)
		}
		if len(c.Invited) >= m.service.options.MaxInvitations {
			return check.TooMuch("principalId", "channel has %d invitations, which is the limit: withdraw one first", len(c.Invited))
		}
		w.Quiet = true
		w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(vocab.Invited, kg.IRI(string(agent))), Validity: kg.TimeSpan{From: w.Tx.Time()}})
		return nil
	})
	return err
}

// entryForAgent returns the entry as seen by another agent with the roles on its
// record.
func (m *Members) entryForAgent(tx *kg.Tx, id channel.ID, agent kg.AgentID) (*access.Entry, error) {
	roles, err := agents.RolesOf(tx, agent)
	return m.service.table.Get(id).AtTime(tx.Time()).AsPrincipal(kg.Principal{ID: agent, Roles: roles}), err
}

// Invitations lists the invitations to a channel. A caller that can neither read nor
// manage the channel sees only its own.
//
// Errors: CodeChannelNotFound.
func (m *Members) Invitations(by Caller, id channel.ID) ([]channel.Invitation, error) {
	agent, e, err := m.service.table.RequireDiscoverable(by, id)
	if err != nil {
		return nil, err
	}
	all := access.IsReadable(e, agent) || e.ManagedBy(agent)
	return slices.DeleteFunc(slices.Clone(e.Invited), func(i channel.Invitation) bool { return !all && i.Agent != agent }), nil
}

// Withdraw removes an invitation. It requires the right to invite.
//
// Errors: CodeNotFound without an invitation; CodePermissionDenied.
func (m *Members) Withdraw(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID) error {
	agent, err := channel.ParseMember(agent)
	if err != nil {
		return err
	}
	return m.removeInvitation(ctx, by, id, agent, "channels/withdraw", (*access.Entry).MustInvite)
}

// Decline removes the caller's own invitation.
//
// Errors: CodeNotFound without an invitation.
func (m *Members) Decline(ctx context.Context, by Caller, id channel.ID) error {
	agent, err := by.ActingAgent()
	if err != nil {
		return err
	}
	return m.removeInvitation(ctx, by, id, agent, "channels/decline", func(*access.Entry, kg.AgentID) error { return nil })
}

// removeInvitation removes the invitation of an agent if must allows it for the caller.
func (m *Members) removeInvitation(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID, method string, must func(*access.Entry, kg.AgentID) error) error {
	_, err := m.service.alterChannel(ctx, by, id, method, must, func(w *channel.Writer, c *channel.Channel) error {
		if !c.IsInvited(agent) {
			return channel.ErrNotInvited()
		}
		w.Quiet = true
		w.RemoveInvitation(c, agent)
		return nil
	})
	return err
}

// Accept makes an invited caller a member.
//
// Errors: CodeNotFound without an invitation; those of Join.
func (m *Members) Accept(ctx context.Context, by Caller, id channel.ID) (*channel.Channel, error) {
	return m.joinChannel(ctx, by, id, channel.Ordinary, "channels/accept", (*access.Entry).MustBeInvited)
}

// joinChannel makes the caller a member with this role if must allows it.
func (m *Members) joinChannel(ctx context.Context, by Caller, id channel.ID, role channel.Role, method string, must func(*access.Entry, kg.AgentID) error) (*channel.Channel, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	_, err = m.service.alterChannel(ctx, by, id, method, must, func(w *channel.Writer, c *channel.Channel) error {
		if c.MemberRole(agent) != "" {
			return nil // no effect
		}
		if err := m.service.checkChannelQuota(w.Tx, agent); err != nil {
			return err
		}
		return m.addMember(w, c, channel.Member{Agent: agent, Role: role})
	})
	if err != nil {
		return nil, err
	}
	return m.service.Get(ctx, by, id)
}

// addMember adds a member that the channel does not have yet.
func (m *Members) addMember(w *channel.Writer, c *channel.Channel, one channel.Member) error {
	if err := c.CheckNotBanned(one.Agent, w.Tx.Time()); err != nil {
		return err
	}
	if most := m.service.memberLimit(c); len(c.Members) >= most {
		e := check.TooMuch("principalId", "channel has %d members, which is the limit", len(c.Members))
		e.Limit = "members"
		return e
	}
	if err := w.Tx.CheckAgent(one.Agent); err != nil {
		return kg.AsError(err).At("principalId")
	}
	one.Joined = w.Tx.Time()
	c.Members = append(c.Members, one)
	w.AddMember(one)
	w.RemoveInvitation(c, one.Agent)
	return nil
}
