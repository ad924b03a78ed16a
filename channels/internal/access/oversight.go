package access

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/kg"
)

// Oversight lets the principals with a role read channels that they take no part in. The
// record of a channel lists the agents that have read it so: an agent is recorded before
// it reads anything, and without the record it reads nothing.
type Oversight struct {
	// Role is the role of overseers; "" means that there are none.
	Role string
	// Record adds the agent of the caller to the record of a channel, durably.
	Record func(context.Context, Caller, channel.ID) error
}

// SetOversight sets the rule for overseers. It must be called before the table is used.
func (t *Table) SetOversight(o Oversight) { t.oversight = o }

// IsOverseer reports whether the principal may read channels that it takes no part in. A
// caller in open mode has every role, so none oversees. Nor does a principal that acts for
// another agent, because it has the roles of neither (Caller.ReaderPrincipal).
func (t *Table) IsOverseer(p kg.Principal) bool {
	return t.oversight.Role != "" && p.Method != kg.MethodOpen && p.HasRole(t.oversight.Role)
}

// CanOversee reports whether the agent is the requesting principal and an overseer, who
// may have itself recorded in the channel and then read it. Bans in the channel do not
// apply to overseers, nor does the access to its scope.
func CanOversee(e *Entry, agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.caller != nil && e.caller.ID == agent && e.table.IsOverseer(*e.caller) &&
		!e.table.ServerRestrictions().AppliesTo(agent, false, e.decisionTime())
}

// Oversees reports whether the principal can read the channel as an overseer.
func (t *Table) Oversees(p kg.Principal, id channel.ID) bool {
	return t.IsOverseer(p) && t.Get(id).AsPrincipal(p).oversees(p.ID)
}

// oversees reports whether the agent can read the channel as an overseer.
func (e *Entry) oversees(agent kg.AgentID) bool {
	return CanOversee(e, agent) && e.Overseers.Include(agent)
}

// IsReadable reports whether the agent can read the channel, taking part or as an overseer.
func IsReadable(e *Entry, agent kg.AgentID) bool { return e.CanRead(agent) || e.oversees(agent) }

// errHidden returns the error for an agent that cannot find the channel by taking part.
func (e *Entry) errHidden(agent kg.AgentID) error {
	if CanOversee(e, agent) {
		return check.Denied("an overseer only reads the channel")
	}
	return channel.ErrNotFound()
}

// MustDiscover returns an error if the agent cannot find the channel by taking part.
func MustDiscover(e *Entry, agent kg.AgentID) error {
	if !e.CanDiscover(agent) {
		return e.errHidden(agent)
	}
	return nil
}

// OpenReadable is RequireReadable before the first read of a request: it records an
// overseer that has not read the channel before.
func (t *Table) OpenReadable(ctx context.Context, by Caller, id channel.ID) (kg.AgentID, *Entry, error) {
	agent, e, err := t.RequireDiscoverable(by, id)
	if err != nil {
		return "", nil, err
	}
	if !IsReadable(e, agent) && CanOversee(e, agent) {
		if err := t.oversight.Record(ctx, by, id); err != nil {
			return "", nil, err
		}
	}
	return t.RequireReadable(by, id)
}
