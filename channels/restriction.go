package channels

import (
	"context"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Ban bans an agent from a channel, or from all channels, until the given time; the
// zero time means until Unban. Managers of the channel can ban agents with a lesser
// role. Administrators can ban anyone from the whole server.
//
// Errors: CodePermissionDenied; CodeInvalid if until is not after the commit's time;
// CodeLimitExceeded above Options.MaxRestrictions.
func (m *Members) Ban(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID, until time.Time) error {
	return m.updateRestriction(ctx, by, id, channel.Restriction{Agent: agent, Until: until}, true)
}

// Unban removes a ban. It is not an error if there is none.
func (m *Members) Unban(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID) error {
	return m.updateRestriction(ctx, by, id, channel.Restriction{Agent: agent}, false)
}

// Mute prevents an agent from publishing. Otherwise it is like Ban.
func (m *Members) Mute(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID, until time.Time) error {
	return m.updateRestriction(ctx, by, id, channel.Restriction{Agent: agent, Muted: true, Until: until}, true)
}

// Unmute removes a mute. It is not an error if there is none.
func (m *Members) Unmute(ctx context.Context, by Caller, id channel.ID, agent kg.AgentID) error {
	return m.updateRestriction(ctx, by, id, channel.Restriction{Agent: agent, Muted: true}, false)
}

// Restrictions lists the active restrictions of a channel or, for AllChannels, of the
// server. The first requires read or manage access to the channel, the second an
// administrator.
//
// Errors: CodeChannelNotFound; CodePermissionDenied.
func (m *Members) Restrictions(by Caller, id channel.ID) ([]channel.Restriction, error) {
	list := m.service.table.ServerRestrictions()
	if id == channel.AllChannels {
		if _, err := by.ActingAgent(); err != nil {
			return nil, err
		}
		if err := mustAdminister(by.Principal); err != nil {
			return nil, err
		}
	} else {
		agent, e, err := m.service.table.RequireDiscoverable(by, id)
		if err != nil {
			return nil, err
		}
		if err := e.MustRead(agent); err != nil && !e.ManagedBy(agent) && !access.IsReadable(e, agent) {
			return nil, err
		}
		list = e.Restrictions
	}
	now := m.service.options.Clock()
	return slices.DeleteFunc(slices.Clone(list), func(b channel.Restriction) bool { return !b.ActiveAt(now) }), nil
}

// updateRestriction adds a restriction if stands is set and removes it otherwise.
func (m *Members) updateRestriction(ctx context.Context, by Caller, id channel.ID, b channel.Restriction, stands bool) error {
	agent, err := channel.ParseMember(b.Agent)
	if err != nil {
		return err
	}
	if err := checkReason("justification", by.Justification); err != nil {
		return err
	}
	b.Agent, b.Until = agent, b.Until.UTC().Truncate(time.Millisecond)
	if id == channel.AllChannels {
		return m.updateServerRestriction(ctx, by, b, stands)
	}
	must := func(e *access.Entry, self kg.AgentID) error { return e.MustRestrict(self, agent) }
	_, err = m.service.alterChannel(ctx, by, id, "channels/bar", must, func(w *channel.Writer, c *channel.Channel) error {
		w.Quiet = true
		if stands && !b.Muted {
			w.RemoveInvitation(c, agent)
		}
		return m.writeRestriction(w, c.Restrictions, b, stands)
	})
	return err
}

func (m *Members) updateServerRestriction(ctx context.Context, by Caller, b channel.Restriction, stands bool) error {
	if _, err := by.ActingAgent(); err != nil {
		return err
	}
	if err := mustAdminister(by.Principal); err != nil {
		return err
	}
	return systemgraph.Update(ctx, m.service.store, by.UpdateMeta("channels/bar"), func(tx *kg.Tx) error {
		return channel.ChangeServerRecord(tx, func(w *channel.Writer) error {
			return m.writeRestriction(w, m.service.table.ServerRestrictions(), b, stands)
		})
	})
}

// writeRestriction adds the restriction if stands is set and removes it otherwise. It
// also removes restrictions that have ended.
func (m *Members) writeRestriction(w *channel.Writer, existing channel.Restrictions, b channel.Restriction, stands bool) error {
	now, left := w.Tx.Time(), 0
	for i := range existing {
		old := &existing[i]
		switch same := old.Agent == b.Agent && old.Muted == b.Muted; {
		case same || !old.ActiveAt(now):
			w.ApplyPatch(kg.Patch{Op: kg.Remove, Quad: w.QuadFor(old.RecordProperty(), kg.IRI(string(old.Agent)))})
		default:
			left++
		}
	}
	if !stands {
		return nil
	}
	if !b.ActiveAt(now) {
		return kg.Errorf(kg.CodeInvalid, "until must be in the future").At("until")
	}
	if left >= m.service.options.MaxRestrictions {
		return check.TooMuch("principalId", "%d agents are banned or muted, which is the limit: remove one first", left)
	}
	w.ApplyPatch(kg.Patch{Op: kg.Add, Quad: w.QuadFor(b.RecordProperty(), kg.IRI(string(b.Agent))), Validity: kg.TimeSpan{From: now, Until: b.Until}})
	return nil
}
