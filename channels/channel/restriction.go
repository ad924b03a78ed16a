package channel

import (
	"slices"
	"time"

	"koine/channels/internal/vocab"
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
const AllChannels ID = ""

// ServerEntity is the subject of server-wide restrictions.
var ServerEntity = kg.IRI("urn:koine:channels")

// ActiveAt reports whether the restriction is in effect at the given time.
func (b *Restriction) ActiveAt(at time.Time) bool { return b.Until.IsZero() || at.Before(b.Until) }

func (b *Restriction) RecordProperty() kg.Term {
	if b.Muted {
		return vocab.Muted
	}
	return vocab.Banned
}

// Restrictions are the restrictions of one channel or of the server. A slice is never
// modified in place.
type Restrictions []Restriction

// forAgent returns the agent's ban or mute, or nil.
func (b Restrictions) forAgent(agent kg.AgentID, muted bool) *Restriction {
	for i := range b {
		if b[i].Agent == agent && b[i].Muted == muted {
			return &b[i]
		}
	}
	return nil
}

// AppliesTo reports whether the agent is banned (or muted) at the given time.
func (b Restrictions) AppliesTo(agent kg.AgentID, muted bool, at time.Time) bool {
	one := b.forAgent(agent, muted)
	return one != nil && one.ActiveAt(at)
}

// withRestriction returns a copy with one more restriction, which replaces the one of
// the same agent and kind.
func (b Restrictions) withRestriction(one Restriction) Restrictions {
	return append(b.withoutAgent(one.Agent, one.Muted), one)
}

func (b Restrictions) withoutAgent(agent kg.AgentID, muted bool) Restrictions {
	return slices.DeleteFunc(slices.Clone(b), func(x Restriction) bool { return x.Agent == agent && x.Muted == muted })
}

// ApplyStatement adds the restriction that a statement states. It reports whether the
// statement states one.
func (b *Restrictions) ApplyStatement(property, object kg.Term, a *kg.Assertion) bool {
	if property != vocab.Banned && property != vocab.Muted {
		return false
	}
	*b = b.withRestriction(Restriction{Agent: kg.AgentID(object.Value()), Muted: property == vocab.Muted, From: a.Validity.From, Until: a.Validity.Until})
	return true
}

// RemoveStatement removes the restriction that a statement stated. It reports whether
// the statement states one.
func (b *Restrictions) RemoveStatement(property, object kg.Term) bool {
	if property != vocab.Banned && property != vocab.Muted {
		return false
	}
	*b = b.withoutAgent(kg.AgentID(object.Value()), property == vocab.Muted)
	return true
}
