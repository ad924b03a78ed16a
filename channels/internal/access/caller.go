package access

import (
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/scope"
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
	// Justification says why the caller requests an update, for its commit.
	Justification string
}

// ActingAgent returns the agent of the request, or an error if the principal may not
// act for it.
func (c Caller) ActingAgent() (kg.AgentID, error) { return c.asCaller().Agent() }

// ReaderPrincipal returns the principal that has the rights of the agent as a reader.
// A principal that acts for another agent has no more rights there than that agent.
func (c Caller) ReaderPrincipal(agent kg.AgentID) kg.Principal { return c.asCaller().Reader(agent) }

// asCaller returns the identity in the form that all protocols share.
func (c Caller) asCaller() caller.Caller {
	return caller.Caller{Principal: c.Principal, Actor: c.Actor}
}

// SeenBy returns the entry as the caller sees it (see Caller.IgnoreInvitations).
func (e *Entry) SeenBy(by Caller) *Entry {
	if e == nil || !by.IgnoreInvitations || len(e.Invited) == 0 {
		return e
	}
	seen := *e
	seen.Invited = nil
	return &seen
}

// UpdateMeta returns the metadata of an update that the caller requests.
func (c Caller) UpdateMeta(method string) kg.Meta {
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Method: method, Justification: c.Justification}
}

// RequireReadable returns the agent and the entry of a channel that it can read, taking
// part or as an overseer on record (OpenReadable). The error is CodePermissionDenied if the
// agent can only find the channel, and CodeChannelNotFound otherwise.
func (t *Table) RequireReadable(by Caller, id channel.ID) (kg.AgentID, *Entry, error) {
	agent, e, err := t.RequireDiscoverable(by, id)
	if err == nil && !IsReadable(e, agent) {
		err = e.MustRead(agent)
	}
	if err != nil {
		return "", nil, err
	}
	return agent, e, nil
}

// RequireDiscoverable is like RequireReadable for a channel that the agent can find, taking
// part or as an overseer.
func (t *Table) RequireDiscoverable(by Caller, id channel.ID) (kg.AgentID, *Entry, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return "", nil, err
	}
	e := t.Get(id)
	if e == nil {
		if !id.IsValid() {
			return "", nil, channel.ErrNotFound()
		}
		e = t.pendingDirect(id, agent)
	}
	e = e.AsPrincipal(by.ReaderPrincipal(agent)).SeenBy(by)
	if !e.CanDiscover(agent) && !CanOversee(e, agent) {
		return "", nil, channel.ErrNotFound()
	}
	return agent, e, nil
}

// RequireScope returns the scope if the caller has access to it, and errNoScope
// otherwise.
func (t *Table) RequireScope(by Caller, id scope.ID) (kg.AgentID, *Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return "", nil, err
	}
	sc := t.scopes.get(id)
	if !sc.AdmitsPrincipal(by.ReaderPrincipal(agent)) {
		return "", nil, scope.ErrNotFound()
	}
	return agent, sc, nil
}

// RequireLevel is like RequireScope for a scope as of a commit at the time, and requires a
// level of access. The error is CodePermissionDenied if the caller has a lesser one.
func (t *Table) RequireLevel(by Caller, id scope.ID, need scope.Level, at time.Time) (kg.AgentID, *Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return "", nil, err
	}
	sc := t.scopes.get(id).AtTime(at)
	switch level := sc.LevelFor(by.ReaderPrincipal(agent)); {
	case level == "":
		return "", nil, scope.ErrNotFound()
	case level.Includes(need):
		return agent, sc, nil
	case need == scope.Admin:
		return "", nil, check.Denied("only the creator and the coordinator of the scope, and who has a grant for it, can do this")
	}
	return "", nil, check.Denied("caller has read access to the scope only")
}
