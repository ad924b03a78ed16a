package channels

import (
	"context"
	"slices"
	"time"

	"koine/internal/agents"
	"koine/kg"
)

// Invitation lets an agent find a channel and join it.
type Invitation struct {
	Agent, By kg.AgentID
	At        time.Time
}

// isInvited reports whether the agent has an invitation.
func (c *Channel) isInvited(agent kg.AgentID) bool {
	return slices.ContainsFunc(c.Invited, func(i Invitation) bool { return i.Agent == agent })
}

// invitationsWithout returns the invitations of all other agents.
func (c *Channel) invitationsWithout(agent kg.AgentID) []Invitation {
	return slices.DeleteFunc(slices.Clone(c.Invited), func(i Invitation) bool { return i.Agent == agent })
}

// Invite lets an agent find the channel and become a member. It requires the right
// Rights.Join; if everyone has that right, it requires membership. Inviting an invited
// agent or a member has no effect. The agent need not be known to the server unless the
// channel is in a scope.
//
// Errors: CodePermissionDenied, also for a banned agent; CodeNotMember for an agent
// without access to the scope of the channel; CodeLimitExceeded above
// Options.MaxInvitations.
func (s *Service) Invite(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	agent, err := parseMember(agent)
	if err != nil {
		return err
	}
	_, err = s.alterChannel(ctx, by, id, "channels/invite", (*entry).mustInvite, func(w *writer, c *Channel) error {
		if c.memberRole(agent) != "" || c.isInvited(agent) {
			return nil // no effect
		}
		if err := c.mustNotBeBanned(agent, w.tx.Time()); err != nil {
			return err
		}
		if e, err := s.entryForAgent(w.tx, id, agent); err != nil {
			return err
		} else if !e.admitsAgent(agent) {
			return errOutOfScope(agent)
		}
		if len(c.Invited) >= s.options.MaxInvitations {
			return errTooMuch("principalId", "channel has %d invitations, which is the limit: withdraw one first", len(c.Invited))
		}
		w.quiet = true
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propInvited, kg.IRI(string(agent))), Validity: kg.TimeSpan{From: w.tx.Time()}})
		return nil
	})
	return err
}

// entryForAgent returns the entry as seen by another agent with the roles on its
// record.
func (s *Service) entryForAgent(tx *kg.Tx, id ChannelID, agent kg.AgentID) (*entry, error) {
	roles, err := agents.RolesOf(tx, agent)
	return s.table.get(id).atTime(tx.Time()).asPrincipal(kg.Principal{ID: agent, Roles: roles}), err
}

func errOutOfScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeNotMember, "%s has no access to the scope of the channel, so it could not accept", agent).At("principalId")
	e.Hint = "give the agent access to the scope first; the roles of a credential are known after its first request"
	return e
}

// Invitations lists the invitations to a channel. A caller that can neither read nor
// manage the channel sees only its own.
//
// Errors: CodeChannelNotFound.
func (s *Service) Invitations(by Caller, id ChannelID) ([]Invitation, error) {
	agent, e, err := s.requireDiscoverable(by, id)
	if err != nil {
		return nil, err
	}
	all := e.canRead(agent) || e.managedBy(agent)
	return slices.DeleteFunc(slices.Clone(e.Invited), func(i Invitation) bool { return !all && i.Agent != agent }), nil
}

// WithdrawInvitation removes an invitation. It requires the right to invite.
//
// Errors: CodeNotFound without an invitation; CodePermissionDenied.
func (s *Service) WithdrawInvitation(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	agent, err := parseMember(agent)
	if err != nil {
		return err
	}
	return s.removeInvitation(ctx, by, id, agent, "channels/withdraw", (*entry).mustInvite)
}

// DeclineInvitation removes the caller's own invitation.
//
// Errors: CodeNotFound without an invitation.
func (s *Service) DeclineInvitation(ctx context.Context, by Caller, id ChannelID) error {
	agent, err := by.actingAgent()
	if err != nil {
		return err
	}
	return s.removeInvitation(ctx, by, id, agent, "channels/decline", func(*entry, kg.AgentID) error { return nil })
}

// removeInvitation removes the invitation of an agent if must allows it for the caller.
func (s *Service) removeInvitation(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, method string, must func(*entry, kg.AgentID) error) error {
	_, err := s.alterChannel(ctx, by, id, method, must, func(w *writer, c *Channel) error {
		if !c.isInvited(agent) {
			return errNotInvited()
		}
		w.quiet = true
		w.removeInvitation(c, agent)
		return nil
	})
	return err
}

// AcceptInvitation makes an invited caller a member.
//
// Errors: CodeNotFound without an invitation; those of Join.
func (s *Service) AcceptInvitation(ctx context.Context, by Caller, id ChannelID) (*Channel, error) {
	return s.joinChannel(ctx, by, id, Ordinary, "channels/accept", (*entry).mustBeInvited)
}

// Join makes the caller a member: Ordinary (the default) or Observer. It requires an
// invitation unless Rights.Join is Everybody. Joining again has no effect.
//
// Errors: CodeChannelNotFound if the caller cannot find the channel;
// CodePermissionDenied without an invitation; CodeLimitExceeded if the channel is full.
func (s *Service) Join(ctx context.Context, by Caller, id ChannelID, role Role) (*Channel, error) {
	switch role {
	case "":
		role = Ordinary
	case Ordinary, Observer:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "role must be member or observer, not %.60q", role).At("role")
	}
	return s.joinChannel(ctx, by, id, role, "channels/join", (*entry).mustBeLetIn)
}

// joinChannel makes the caller a member with this role if must allows it.
func (s *Service) joinChannel(ctx context.Context, by Caller, id ChannelID, role Role, method string, must func(*entry, kg.AgentID) error) (*Channel, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	_, err = s.alterChannel(ctx, by, id, method, must, func(w *writer, c *Channel) error {
		if c.memberRole(agent) != "" {
			return nil // no effect
		}
		if err := s.checkChannelQuota(w.tx, agent); err != nil {
			return err
		}
		return s.addMember(w, c, Member{Agent: agent, Role: role})
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, by, id)
}

// addMember adds a member that the channel does not have yet.
func (s *Service) addMember(w *writer, c *Channel, m Member) error {
	if err := c.mustNotBeBanned(m.Agent, w.tx.Time()); err != nil {
		return err
	}
	if most := s.memberLimit(c); len(c.Members) >= most {
		return errTooMuch("principalId", "channel has %d members, which is the limit", len(c.Members))
	}
	if err := w.tx.CheckAgent(m.Agent); err != nil {
		return kg.AsError(err).At("principalId")
	}
	m.Joined = w.tx.Time()
	c.Members = append(c.Members, m)
	w.addMember(m)
	w.removeInvitation(c, m.Agent)
	return nil
}

// Leave removes the caller from a channel.
//
// Errors: CodeLastOwner; CodePermissionDenied if the caller is not a member.
func (s *Service) Leave(ctx context.Context, by Caller, id ChannelID) error {
	agent, err := by.actingAgent()
	if err != nil {
		return err
	}
	_, err = s.RemoveMember(ctx, by, id, agent)
	return err
}

// removeInvitation removes an invitation if there is one.
func (w *writer) removeInvitation(c *Channel, agent kg.AgentID) {
	if c.isInvited(agent) {
		w.applyPatch(kg.Patch{Op: kg.Remove, Quad: w.quadFor(propInvited, kg.IRI(string(agent)))})
	}
}

func errNotInvited() *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "invitation not found").At("principalId")
}
