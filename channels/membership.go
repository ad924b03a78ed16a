package channels

import (
	"context"
	"slices"

	"koine/internal/systemgraph"
	"koine/kg"
)

// AddMember adds a member or changes a member's role. It requires an owner or, in a
// scope, the creator of the channel.
//
// Errors: CodeLastOwner if no owner would remain; CodeLimitExceeded if the channel is
// full; CodePermissionDenied, also for direct channels.
func (s *Service) AddMember(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, role Role) (*Channel, error) {
	agent, err := parseMember(agent)
	if err != nil {
		return nil, err
	}
	if role, err = parseRole(role); err != nil {
		return nil, err
	}
	return s.alterChannel(ctx, by, id, "channels/addMember", (*entry).mustManageMembers, func(w *writer, c *Channel) error {
		at := slices.IndexFunc(c.Members, func(m Member) bool { return m.Agent == agent })
		if at < 0 {
			return s.addMember(w, c, Member{Agent: agent, Role: role})
		}
		m := &c.Members[at]
		if m.Role == role {
			return nil
		}
		if m.Role == Owner && role != Owner && c.ownerCount() == 1 {
			return errLastOwner()
		}
		w.removeMember(*m)
		m.Role = role
		w.addMember(*m)
		return nil
	})
}

// RemoveMember removes a member. It requires the right to add members, or the member
// itself. A member that would keep access through the scope cannot be removed, because
// that would change nothing for it.
//
// Errors: CodeNotFound if the agent is not a member; CodeLastOwner; CodeInvalid if the
// agent would keep access; CodePermissionDenied.
func (s *Service) RemoveMember(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) (*Channel, error) {
	agent, err := parseMember(agent)
	if err != nil {
		return nil, err
	}
	self, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	must := (*entry).mustManageMembers
	if self == agent {
		must = (*entry).mustTakePart
	}
	return s.alterChannel(ctx, by, id, "channels/removeMember", must, func(w *writer, c *Channel) error {
		at := slices.IndexFunc(c.Members, func(m Member) bool { return m.Agent == agent })
		if at < 0 {
			return kg.Errorf(kg.CodeNotFound, "%s is not a member", agent).At("principalId")
		}
		if c.Members[at].Role == Owner && c.ownerCount() == 1 {
			return errLastOwner()
		}
		if self != agent && c.MemberPolicy == ByScope {
			e, err := s.entryForAgent(w.tx, id, agent)
			if err != nil {
				return err
			}
			if e.policy.Read == Everybody && e.canRead(agent) {
				return errStaysByScope(agent)
			}
		}
		w.removeMember(c.Members[at])
		c.Members = slices.Delete(c.Members, at, at+1)
		return nil
	})
}

func parseMember(agent kg.AgentID) (kg.AgentID, error) {
	if agent == "" {
		return "", kg.Errorf(kg.CodeInvalid, "principalId is missing").At("principalId")
	}
	agent = kg.CanonicalAgent(string(agent))
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("principalId")
	}
	return agent, nil
}

func errLastOwner() *kg.Error {
	e := kg.Errorf(kg.CodeLastOwner, "agent is the last owner of the channel").At("principalId")
	e.Hint = "make another member an owner first, or delete the channel"
	return e
}

func errStaysByScope(agent kg.AgentID) *kg.Error {
	e := kg.Errorf(kg.CodeInvalid, "%s has access through the scope and would keep it", agent).At("principalId")
	e.Hint = "ban the agent from the channel or remove its access to the scope; to change its role, add it again"
	return e
}

// Delete deletes a channel. It removes all members, and from then on no agent can read
// the channel at any revision. It requires an owner.
func (s *Service) Delete(ctx context.Context, by Caller, id ChannelID) error {
	agent, e, err := s.requireDiscoverable(by, id)
	if err != nil {
		return err
	}
	if e.Kind == Direct {
		return errDenied("direct channel cannot be deleted")
	}
	return systemgraph.Update(ctx, s.store, by.updateMeta("channels/delete"), func(tx *kg.Tx) error {
		e := s.table.get(id).atTime(tx.Time()).asPrincipal(by.readerPrincipal(agent))
		if !e.canDiscover(agent) {
			return errNoChannel()
		}
		if err := e.mustOwn(agent); err != nil {
			return err
		}
		_, err := s.changeChannel(tx, id, func(w *writer, c *Channel) error {
			for _, m := range c.Members {
				w.removeMember(m)
			}
			w.clearProperty(propInvited)
			w.setProperty(propDeleted, kg.DateTime(tx.Time()))
			return nil
		})
		return err
	})
}
