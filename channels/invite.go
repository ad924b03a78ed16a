package channels

import (
	"context"
	"slices"
	"time"

	"koine/internal/agents"
	"koine/kg"
)

// Invitation lets an agent find a channel and enter it.
type Invitation struct {
	Agent, By kg.AgentID
	At        time.Time
}

// isInvited tells whether the agent is.
func (c *Channel) isInvited(agent kg.AgentID) bool {
	return slices.ContainsFunc(c.Invited, func(i Invitation) bool { return i.Agent == agent })
}

// invitationsWithout are the others that are.
func (c *Channel) invitationsWithout(agent kg.AgentID) []Invitation {
	return slices.DeleteFunc(slices.Clone(c.Invited), func(i Invitation) bool { return i.Agent == agent })
}

// Invite lets an agent find the channel and accept to be a member. Those may who
// have the right Rights.Join; members, where that is everybody's. One that is
// invited or a member already stays so. Of an agent need nothing be known, unless
// the channel is in a scope.
//
// Errors: CodePermissionDenied, also for an agent that is banned; CodeNotMember for
// one without access to the scope of the channel; CodeLimitExceeded past
// Options.MaxInvitations.
func (s *Service) Invite(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	agent, err := parseMember(agent)
	if err != nil {
		return err
	}
	_, err = s.alterChannel(ctx, by, id, "channels/invite", (*entry).mustInvite, func(w *writer, c *Channel) error {
		if c.memberRole(agent) != "" || c.isInvited(agent) {
			return nil // as it is
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
			return errTooMuch("principalId", "%d agents are invited, as many as may be", len(c.Invited))
		}
		w.quiet = true
		w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(propInvited, kg.IRI(string(agent))), Validity: kg.TimeSpan{From: w.tx.Time()}})
		return nil
	})
	return err
}

// entryForAgent is the channel as it is asked about by another agent, with the roles
// that its record has.
func (s *Service) entryForAgent(tx *kg.Tx, id ChannelID, agent kg.AgentID) (*entry, error) {
	roles, err := agents.RolesOf(tx, agent)
	return s.table.get(id).atTime(tx.Time()).asPrincipal(kg.Principal{ID: agent, Roles: roles}), err
}

func errOutOfScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeNotMember, "%s has no access to the scope of the channel, and could not accept", agent).At("principalId")
	e.Hint = "give it access to the scope first; roles that a credential brings are known from its first request on"
	return e
}

// Invitations lists who is invited to a channel. Who neither reads nor manages it is
// told of its own invitation only.
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

// WithdrawInvitation takes an invitation back. Whoever may invite may.
//
// Errors: CodeNotFound without one; CodePermissionDenied.
func (s *Service) WithdrawInvitation(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	agent, err := parseMember(agent)
	if err != nil {
		return err
	}
	return s.removeInvitation(ctx, by, id, agent, "channels/withdraw", (*entry).mustInvite)
}

// DeclineInvitation is the agent's own answer to an invitation.
//
// Errors: CodeNotFound without one.
func (s *Service) DeclineInvitation(ctx context.Context, by Caller, id ChannelID) error {
	agent, err := by.actingAgent()
	if err != nil {
		return err
	}
	return s.removeInvitation(ctx, by, id, agent, "channels/decline", func(*entry, kg.AgentID) error { return nil })
}

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

// AcceptInvitation makes the agent a member that was invited.
//
// Errors: CodeNotFound without an invitation; those of Join.
func (s *Service) AcceptInvitation(ctx context.Context, by Caller, id ChannelID) (*Channel, error) {
	return s.joinChannel(ctx, by, id, Ordinary, "channels/accept", (*entry).mustBeInvited)
}

// Join makes the agent a member of its own will: as Ordinary ("" is the same) or as
// Observer. Anybody may where Rights.Join is everybody's, others with an
// invitation. Who is a member already stays what it is.
//
// Errors: CodeChannelNotFound for one that the agent may not find;
// CodePermissionDenied without an invitation; CodeLimitExceeded when it is full.
func (s *Service) Join(ctx context.Context, by Caller, id ChannelID, role Role) (*Channel, error) {
	switch role {
	case "":
		role = Ordinary
	case Ordinary, Observer:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "one joins as a member or an observer, not as %.60q", role).At("role")
	}
	return s.joinChannel(ctx, by, id, role, "channels/join", (*entry).mustBeLetIn)
}

func (s *Service) joinChannel(ctx context.Context, by Caller, id ChannelID, role Role, method string, must func(*entry, kg.AgentID) error) (*Channel, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	_, err = s.alterChannel(ctx, by, id, method, must, func(w *writer, c *Channel) error {
		if c.memberRole(agent) != "" {
			return nil // as it is
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

// addMember makes an agent a member that is none.
func (s *Service) addMember(w *writer, c *Channel, m Member) error {
	if err := c.mustNotBeBanned(m.Agent, w.tx.Time()); err != nil {
		return err
	}
	if most := s.memberLimit(c); len(c.Members) >= most {
		return errTooMuch("principalId", "the channel has %d members, as many as it may", len(c.Members))
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

// Leave takes the caller out of a channel.
//
// Errors: CodeLastOwner; CodePermissionDenied for who is no member.
func (s *Service) Leave(ctx context.Context, by Caller, id ChannelID) error {
	agent, err := by.actingAgent()
	if err != nil {
		return err
	}
	_, err = s.RemoveMember(ctx, by, id, agent)
	return err
}

// removeInvitation takes an invitation away, if there is one.
func (w *writer) removeInvitation(c *Channel, agent kg.AgentID) {
	if c.isInvited(agent) {
		w.applyPatch(kg.Patch{Op: kg.Remove, Quad: w.quadFor(propInvited, kg.IRI(string(agent)))})
	}
}

func errNotInvited() *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "there is no invitation").At("principalId")
}
