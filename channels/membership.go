package channels

import (
	"context"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

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

// Delete deletes a channel. It removes all members, and from then on no agent can read
// the channel at any revision. It requires an owner.
func (s *Service) Delete(ctx context.Context, by Caller, id channel.ID) error {
	agent, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return err
	}
	if e.Kind == channel.Direct {
		return check.Denied("direct channel cannot be deleted")
	}
	return systemgraph.Update(ctx, s.store, by.UpdateMeta("channels/delete"), func(tx *kg.Tx) error {
		e := s.table.Get(id).AtTime(tx.Time()).AsPrincipal(by.ReaderPrincipal(agent))
		if !e.CanDiscover(agent) {
			return channel.ErrNotFound()
		}
		if err := e.MustOwn(agent); err != nil {
			return err
		}
		_, err := channel.ChangeRecord(tx, id, func(w *channel.Writer, c *channel.Channel) error {
			for _, m := range c.Members {
				w.RemoveMember(m)
			}
			w.ClearProperty(vocab.Invited)
			w.SetProperty(vocab.Deleted, kg.DateTime(tx.Time()))
			return nil
		})
		return err
	})
}

// Members is the part of the service that decides who is in a channel: members, the
// invited, the banned and the muted.
type Members struct{ service *Service }
