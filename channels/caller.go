package channels

import (
	"koine/internal/caller"
	"koine/kg"
)

// Caller identifies the source of a request: the authenticated principal and the agent
// that it acts for. Members and authors are agents.
type Caller struct {
	Principal kg.Principal
	Actor     kg.AgentID // "" for the principal itself
	// IgnoreInvitations hides invitations, for protocols that have none: a channel that
	// the agent could find only through its invitation is not found.
	IgnoreInvitations bool
}

// actingAgent returns the agent of the request, or an error if the principal may not
// act for it.
func (c Caller) actingAgent() (kg.AgentID, error) { return c.asCaller().Agent() }

// readerPrincipal returns the principal with whose rights the agent reads its channels.
// A principal that acts for another agent has no more rights there than that agent.
func (c Caller) readerPrincipal(agent kg.AgentID) kg.Principal { return c.asCaller().Reader(agent) }

// asCaller returns the identity in the form that all protocols share.
func (c Caller) asCaller() caller.Caller {
	return caller.Caller{Principal: c.Principal, Actor: c.Actor}
}

// seenBy returns the entry as the caller sees it (see Caller.IgnoreInvitations).
func (e *entry) seenBy(by Caller) *entry {
	if e == nil || !by.IgnoreInvitations || len(e.Invited) == 0 {
		return e
	}
	seen := *e
	seen.Invited = nil
	return &seen
}

// updateMeta returns the metadata of an update that the caller requests.
func (c Caller) updateMeta(method string) kg.Meta {
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Method: method}
}
