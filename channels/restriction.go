package channels

import (
	"context"
	"slices"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Restriction bans or mutes an agent in one channel or in all channels. A banned agent
// cannot find the channel. A muted agent can read but not publish. The agent's
// membership is unchanged.
type Restriction struct {
	Agent kg.AgentID
	Muted bool // muted, not banned
	// From is the time of the commit. Until is the time at which the restriction ends;
	// the zero time means never. Within a commit, the commit's time decides.
	From, Until time.Time
}

// AllChannels as the channel of a ban or mute means the whole server, including direct
// channels.
const AllChannels ChannelID = ""

// serverEntity is the subject of server-wide restrictions.
var serverEntity = kg.IRI("urn:koine:channels")

// activeAt reports whether the restriction is in effect at the given time.
func (b *Restriction) activeAt(at time.Time) bool { return b.Until.IsZero() || at.Before(b.Until) }

func (b *Restriction) recordProperty() kg.Term {
	if b.Muted {
		return propMuted
	}
	return propBanned
}

// restrictions are the restrictions of one channel or of the server. A slice is never
// modified in place.
type restrictions []Restriction

// forAgent returns the agent's ban or mute, or nil.
func (b restrictions) forAgent(agent kg.AgentID, muted bool) *Restriction {
	for i := range b {
		if b[i].Agent == agent && b[i].Muted == muted {
			return &b[i]
		}
	}
	return nil
}

// appliesTo reports whether the agent is banned (or muted) at the given time.
func (b restrictions) appliesTo(agent kg.AgentID, muted bool, at time.Time) bool {
	one := b.forAgent(agent, muted)
	return one != nil && one.activeAt(at)
}

// withRestriction returns a copy with one more restriction, which replaces the one of
// the same agent and kind.
func (b restrictions) withRestriction(one Restriction) restrictions {
	return append(b.withoutAgent(one.Agent, one.Muted), one)
}

func (b restrictions) withoutAgent(agent kg.AgentID, muted bool) restrictions {
	return slices.DeleteFunc(slices.Clone(b), func(x Restriction) bool { return x.Agent == agent && x.Muted == muted })
}

// applyStatement adds the restriction that a statement states. It reports whether the
// statement states one.
func (b *restrictions) applyStatement(property, object kg.Term, a *kg.Assertion) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.withRestriction(Restriction{Agent: kg.AgentID(object.Value()), Muted: property == propMuted, From: a.Validity.From, Until: a.Validity.Until})
	return true
}

// removeStatement removes the restriction that a statement stated. It reports whether
// the statement states one.
func (b *restrictions) removeStatement(property, object kg.Term) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.withoutAgent(kg.AgentID(object.Value()), property == propMuted)
	return true
}

// Ban bans an agent from a channel, or from all channels, until the given time; the
// zero time means until Unban. Managers of the channel can ban agents with a lesser
// role. Administrators can ban anyone from the whole server.
//
// Errors: CodePermissionDenied; CodeInvalid if until is not after the commit's time;
// CodeLimitExceeded above Options.MaxRestrictions.
func (s *Service) Ban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Until: until}, true)
}

// Unban removes a ban. It is not an error if there is none.
func (s *Service) Unban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent}, false)
}

// Mute prevents an agent from publishing. Otherwise it is like Ban.
func (s *Service) Mute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Muted: true, Until: until}, true)
}

// Unmute removes a mute. It is not an error if there is none.
func (s *Service) Unmute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Muted: true}, false)
}

// Restrictions lists the active restrictions of a channel or, for AllChannels, of the
// server. The first requires read or manage access to the channel, the second an
// administrator.
//
// Errors: CodeChannelNotFound; CodePermissionDenied.
func (s *Service) Restrictions(by Caller, id ChannelID) ([]Restriction, error) {
	list := s.table.serverRestrictions()
	if id == AllChannels {
		if _, err := by.actingAgent(); err != nil {
			return nil, err
		}
		if err := mustAdminister(by.Principal); err != nil {
			return nil, err
		}
	} else {
		agent, e, err := s.requireDiscoverable(by, id)
		if err != nil {
			return nil, err
		}
		if err := e.mustRead(agent); err != nil && !e.managedBy(agent) {
			return nil, err
		}
		list = e.Restrictions
	}
	now := s.table.now()
	return slices.DeleteFunc(slices.Clone(list), func(b Restriction) bool { return !b.activeAt(now) }), nil
}

// updateRestriction adds a restriction if stands is set and removes it otherwise.
func (s *Service) updateRestriction(ctx context.Context, by Caller, id ChannelID, b Restriction, stands bool) error {
	agent, err := parseMember(b.Agent)
	if err != nil {
		return err
	}
	b.Agent, b.Until = agent, b.Until.UTC().Truncate(time.Millisecond)
	if id == AllChannels {
		return s.updateServerRestriction(ctx, by, b, stands)
	}
	must := func(e *entry, self kg.AgentID) error { return e.mustRestrict(self, agent) }
	_, err = s.alterChannel(ctx, by, id, "channels/bar", must, func(w *writer, c *Channel) error {
		w.quiet = true
		if stands && !b.Muted {
			w.removeInvitation(c, agent)
		}
		return s.writeRestriction(w, c.Restrictions, b, stands)
	})
	return err
}

func (s *Service) updateServerRestriction(ctx context.Context, by Caller, b Restriction, stands bool) error {
	if _, err := by.actingAgent(); err != nil {
		return err
	}
	if err := mustAdminister(by.Principal); err != nil {
		return err
	}
	return systemgraph.Update(ctx, s.store, by.updateMeta("channels/bar"), func(tx *kg.Tx) error {
		w := &writer{tx: tx}
		if err := s.writeRestriction(w, s.table.serverRestrictions(), b, stands); err != nil {
			return err
		}
		return w.err
	})
}

// writeRestriction adds the restriction if stands is set and removes it otherwise. It
// also removes restrictions that have ended.
func (s *Service) writeRestriction(w *writer, existing restrictions, b Restriction, stands bool) error {
	now, left := w.tx.Time(), 0
	for i := range existing {
		old := &existing[i]
		switch same := old.Agent == b.Agent && old.Muted == b.Muted; {
		case same || !old.activeAt(now):
			w.applyPatch(kg.Patch{Op: kg.Remove, Quad: w.quadFor(old.recordProperty(), kg.IRI(string(old.Agent)))})
		default:
			left++
		}
	}
	if !stands {
		return nil
	}
	if !b.activeAt(now) {
		return kg.Errorf(kg.CodeInvalid, "until must be in the future").At("until")
	}
	if left >= s.options.MaxRestrictions {
		return errTooMuch("principalId", "%d agents are banned or muted, which is the limit: remove one first", left)
	}
	w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(b.recordProperty(), kg.IRI(string(b.Agent))), Validity: kg.TimeSpan{From: now, Until: b.Until}})
	return nil
}
