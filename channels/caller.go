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

// actingAgent is the agent that asks; an error where the principal may not act for it.
func (c Caller) actingAgent() (kg.AgentID, error) { return c.asCaller().Agent() }

// readerPrincipal is the principal under whose eyes the agent reads its channels. Who acts
// for another has no more rights there than that agent.
func (c Caller) readerPrincipal(agent kg.AgentID) kg.Principal { return c.asCaller().Reader(agent) }

// asCaller is what of the caller is the same wherever it asks.
func (c Caller) asCaller() caller.Caller {
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

// updateMeta is that of an update which the caller asks for.
func (c Caller) updateMeta(method string) kg.Meta {
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Method: method}
}
