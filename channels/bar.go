package channels

import (
	"context"
	"slices"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Restriction keeps an agent from a channel, or from all of them: one that is banned finds
// nothing, one that is muted reads and does not publish. What the agent is in the
// channel stays as it is.
type Restriction struct {
	Agent kg.AgentID
	Muted bool // not banned
	// From is the time of the commit; Until that from which on the agent is free
	// again by itself, the zero time for never. Inside of a commit its time decides.
	From, Until time.Time
}

// AllChannels, where a ban or mute is about a channel, is the whole server, direct
// channels included.
const AllChannels ChannelID = ""

// serverEntity is what bars that are about the whole server are said of.
var serverEntity = kg.IRI("urn:koine:channels")

func (b *Restriction) activeAt(at time.Time) bool { return b.Until.IsZero() || at.Before(b.Until) }

func (b *Restriction) recordProperty() kg.Term {
	if b.Muted {
		return propMuted
	}
	return propBanned
}

// restrictions are those of one channel or of the server. Not to be changed.
type restrictions []Restriction

// forAgent is that of an agent, nil without one.
func (b restrictions) forAgent(agent kg.AgentID, muted bool) *Restriction {
	for i := range b {
		if b[i].Agent == agent && b[i].Muted == muted {
			return &b[i]
		}
	}
	return nil
}

// appliesTo tells whether the agent is barred at a time.
func (b restrictions) appliesTo(agent kg.AgentID, muted bool, at time.Time) bool {
	one := b.forAgent(agent, muted)
	return one != nil && one.activeAt(at)
}

// withRestriction has one more, in place of that of the same agent and sort.
func (b restrictions) withRestriction(one Restriction) restrictions {
	return append(b.withoutAgent(one.Agent, one.Muted), one)
}

func (b restrictions) withoutAgent(agent kg.AgentID, muted bool) restrictions {
	return slices.DeleteFunc(slices.Clone(b), func(x Restriction) bool { return x.Agent == agent && x.Muted == muted })
}

// applyStatement takes a statement in, and drop out; they tell whether it was one of a bar.
func (b *restrictions) applyStatement(property, object kg.Term, a *kg.Assertion) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.withRestriction(Restriction{Agent: kg.AgentID(object.Value()), Muted: property == propMuted, From: a.Validity.From, Until: a.Validity.Until})
	return true
}

func (b *restrictions) removeStatement(property, object kg.Term) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.withoutAgent(kg.AgentID(object.Value()), property == propMuted)
	return true
}

// Ban keeps an agent out of a channel, or of all, until a time (zero: until Unban).
// Who manages the channel bans those of a lesser role, and administrators everybody
// from the whole server.
//
// Errors: CodePermissionDenied; CodeInvalid for a time that has passed by then;
// CodeLimitExceeded past Options.MaxBars.
func (s *Service) Ban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Until: until}, true)
}

// Unban ends a ban. One that is not there is no error.
func (s *Service) Unban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent}, false)
}

// Mute is Ban for publishing only.
func (s *Service) Mute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Muted: true, Until: until}, true)
}

// Unmute ends a mute. One that is not there is no error.
func (s *Service) Unmute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.updateRestriction(ctx, by, id, Restriction{Agent: agent, Muted: true}, false)
}

// Restrictions lists those of a channel, or of all, that have not ended: of a channel for
// who reads or manages it, of the whole server for administrators.
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
	return records.Update(ctx, s.store, by.updateMeta("channels/bar"), func(tx *kg.Tx) error {
		w := &writer{tx: tx}
		if err := s.writeRestriction(w, s.table.serverRestrictions(), b, stands); err != nil {
			return err
		}
		return w.err
	})
}

// writeRestriction writes that a bar stands, or no longer does. Those that have ended are
// cleared away with it.
func (s *Service) writeRestriction(w *writer, there restrictions, b Restriction, stands bool) error {
	now, left := w.tx.Time(), 0
	for i := range there {
		old := &there[i]
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
		return kg.Errorf(kg.CodeInvalid, "that time has passed").At("until")
	}
	if left >= s.options.MaxRestrictions {
		return errTooMuch("principalId", "%d agents are banned or muted, as many as may be", left)
	}
	w.applyPatch(kg.Patch{Op: kg.Add, Quad: w.quadFor(b.recordProperty(), kg.IRI(string(b.Agent))), Validity: kg.TimeSpan{From: now, Until: b.Until}})
	return nil
}
