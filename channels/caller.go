package channels

import (
	"koine/internal/caller"
	"koine/kg"
)

// Caller is who asks: the principal that was authenticated, and the agent that it
// acts for. Members and authors are agents.
type Caller struct {
	Principal kg.Principal
	Actor     kg.AgentID // "" means the principal itself
	// IgnoreInvitations leaves invitations out, for protocols that have none: a channel that
	// the agent would find by its invitation alone is not there.
	IgnoreInvitations bool
}

// agent is the agent that asks; an error where the principal may not act for it.
func (c Caller) agent() (kg.AgentID, error) { return c.request().Agent() }

// reader is the principal under whose eyes the agent reads its channels. Who acts
// for another has no more rights there than that agent.
func (c Caller) reader(agent kg.AgentID) kg.Principal { return c.request().Reader(agent) }

// request is what of the caller is the same wherever it asks.
func (c Caller) request() caller.Caller {
	return caller.Caller{Principal: c.Principal, Actor: c.Actor}
}

// seenBy is the channel as it is for the caller.
func (e *entry) seenBy(by Caller) *entry {
	if e == nil || !by.IgnoreInvitations || len(e.Invited) == 0 {
		return e
	}
	seen := *e
	seen.Invited = nil
	return &seen
}

// meta is that of an update which the caller asks for.
func (c Caller) meta(method string) kg.Meta {
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Method: method}
}
