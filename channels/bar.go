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

func (b *Restriction) holds(at time.Time) bool { return b.Until.IsZero() || at.Before(b.Until) }

func (b *Restriction) property() kg.Term {
	if b.Muted {
		return propMuted
	}
	return propBanned
}

// bars are those of one channel or of the server. Not to be changed.
type bars []Restriction

// of is that of an agent, nil without one.
func (b bars) of(agent kg.AgentID, muted bool) *Restriction {
	for i := range b {
		if b[i].Agent == agent && b[i].Muted == muted {
			return &b[i]
		}
	}
	return nil
}

// holds tells whether the agent is barred at a time.
func (b bars) holds(agent kg.AgentID, muted bool, at time.Time) bool {
	one := b.of(agent, muted)
	return one != nil && one.holds(at)
}

// with has one more, in place of that of the same agent and sort.
func (b bars) with(one Restriction) bars { return append(b.without(one.Agent, one.Muted), one) }

func (b bars) without(agent kg.AgentID, muted bool) bars {
	return slices.DeleteFunc(slices.Clone(b), func(x Restriction) bool { return x.Agent == agent && x.Muted == muted })
}

// take takes a statement in, and drop out; they tell whether it was one of a bar.
func (b *bars) take(property, object kg.Term, a *kg.Assertion) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.with(Restriction{Agent: kg.AgentID(object.Value()), Muted: property == propMuted, From: a.Validity.From, Until: a.Validity.Until})
	return true
}

func (b *bars) drop(property, object kg.Term) bool {
	if property != propBanned && property != propMuted {
		return false
	}
	*b = b.without(kg.AgentID(object.Value()), property == propMuted)
	return true
}

// Ban keeps an agent out of a channel, or of all, until a time (zero: until Unban).
// Who manages the channel bans those of a lesser role, and administrators everybody
// from the whole server.
//
// Errors: CodePermissionDenied; CodeInvalid for a time that has passed by then;
// CodeLimitExceeded past Options.MaxBars.
func (s *Service) Ban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.bar(ctx, by, id, Restriction{Agent: agent, Until: until}, true)
}

// Unban ends a ban. One that is not there is no error.
func (s *Service) Unban(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.bar(ctx, by, id, Restriction{Agent: agent}, false)
}

// Mute is Ban for publishing only.
func (s *Service) Mute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID, until time.Time) error {
	return s.bar(ctx, by, id, Restriction{Agent: agent, Muted: true, Until: until}, true)
}

// Unmute ends a mute. One that is not there is no error.
func (s *Service) Unmute(ctx context.Context, by Caller, id ChannelID, agent kg.AgentID) error {
	return s.bar(ctx, by, id, Restriction{Agent: agent, Muted: true}, false)
}

// Restrictions lists those of a channel, or of all, that have not ended: of a channel for
// who reads or manages it, of the whole server for administrators.
//
// Errors: CodeChannelNotFound; CodePermissionDenied.
func (s *Service) Restrictions(by Caller, id ChannelID) ([]Restriction, error) {
	list := s.table.everywhere()
	if id == AllChannels {
		if _, err := by.agent(); err != nil {
			return nil, err
		}
		if err := mustAdminister(by.Principal); err != nil {
			return nil, err
		}
	} else {
		agent, e, err := s.discover(by, id)
		if err != nil {
			return nil, err
		}
		if err := e.mustRead(agent); err != nil && !e.managedBy(agent) {
			return nil, err
		}
		list = e.Restrictions
	}
	now := s.table.now()
	return slices.DeleteFunc(slices.Clone(list), func(b Restriction) bool { return !b.holds(now) }), nil
}

func (s *Service) bar(ctx context.Context, by Caller, id ChannelID, b Restriction, stands bool) error {
	agent, err := parseMember(b.Agent)
	if err != nil {
		return err
	}
	b.Agent, b.Until = agent, b.Until.UTC().Truncate(time.Millisecond)
	if id == AllChannels {
		return s.barEverywhere(ctx, by, b, stands)
	}
	must := func(e *entry, self kg.AgentID) error { return e.mustBar(self, agent) }
	_, err = s.alter(ctx, by, id, "channels/bar", must, func(w *writer, c *Channel) error {
		w.quiet = true
		if stands && !b.Muted {
			w.uninvite(c, agent)
		}
		return s.writeBar(w, c.Restrictions, b, stands)
	})
	return err
}

func (s *Service) barEverywhere(ctx context.Context, by Caller, b Restriction, stands bool) error {
	if _, err := by.agent(); err != nil {
		return err
	}
	if err := mustAdminister(by.Principal); err != nil {
		return err
	}
	return records.Update(ctx, s.store, by.meta("channels/bar"), func(tx *kg.Tx) error {
		w := &writer{tx: tx}
		if err := s.writeBar(w, s.table.everywhere(), b, stands); err != nil {
			return err
		}
		return w.err
	})
}

// writeBar writes that a bar stands, or no longer does. Those that have ended are
// cleared away with it.
func (s *Service) writeBar(w *writer, there bars, b Restriction, stands bool) error {
	now, left := w.tx.Time(), 0
	for i := range there {
		old := &there[i]
		switch same := old.Agent == b.Agent && old.Muted == b.Muted; {
		case same || !old.holds(now):
			w.apply(kg.Patch{Op: kg.Remove, Quad: w.quad(old.property(), kg.IRI(string(old.Agent)))})
		default:
			left++
		}
	}
	if !stands {
		return nil
	}
	if !b.holds(now) {
		return kg.Errorf(kg.CodeInvalid, "that time has passed").At("until")
	}
	if left >= s.options.MaxRestrictions {
		return errTooMuch("principalId", "%d agents are banned or muted, as many as may be", left)
	}
	w.apply(kg.Patch{Op: kg.Add, Quad: w.quad(b.property(), kg.IRI(string(b.Agent))), Validity: kg.TimeSpan{From: now, Until: b.Until}})
	return nil
}
