package access

import (
	"koine/channels/channel"
	"koine/kg"
)

// DirectPeer returns the other agent of a direct channel, or "" if the server does not
// know it.
func (t *Table) DirectPeer(id channel.ID, agent kg.AgentID) (other kg.AgentID) {
	look := func(known kg.AgentID) bool {
		if known != agent && channel.DirectID(agent, known) == id {
			other = known
		}
		return other == ""
	}
	if t.agents(look); other == "" {
		t.eachMember(look)
	}
	return other
}

// pendingDirect returns the direct channel of the agent and another known agent before
// its first message, or nil if id is not such a channel.
func (t *Table) pendingDirect(id channel.ID, agent kg.AgentID) *Entry {
	if !id.IsDirect() {
		return nil
	}
	other := t.DirectPeer(id, agent)
	if other == "" {
		return nil
	}
	return t.NewDirectEntry(agent, other)
}

// NewDirectEntry returns the direct channel of two agents before its first message.
func (t *Table) NewDirectEntry(a, b kg.AgentID) *Entry {
	c := channel.Channel{ID: channel.DirectID(a, b), Kind: channel.Direct, Visibility: channel.Private, Version: 1, Members: []channel.Member{{Agent: a, Role: channel.Ordinary}, {Agent: b, Role: channel.Ordinary}}}
	return t.newEntry(c)
}

// PendingEntry returns the entry of a channel that is being created with its first
// message, or nil.
func (t *Table) PendingEntry(id channel.ID) *Entry {
	e, _ := t.pending.Load(id)
	coming, _ := e.(*Entry)
	return coming
}

// NewPendingEntry returns the entry of a channel with a commit that has not been applied to
// the table yet.
func (t *Table) NewPendingEntry(c channel.Channel) *Entry {
	e := t.newEntry(c)
	e.scope = t.scopes.cellOrEmpty(c.Scope)
	return e
}

// AddPending makes the guard decide by the entry of a channel that is being created with
// its first message, until remove is called.
func (t *Table) AddPending(e *Entry) (remove func()) {
	t.pending.Store(e.ID, e)
	return func() { t.pending.CompareAndDelete(e.ID, e) }
}
