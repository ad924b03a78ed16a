package channels

import (
	"koine/channels/channel"
	"koine/kg"
)

// pendingEntry returns the entry of the channel that is created with the message, or
// nil if the channel exists. Its facts are written in the same commit, and the guard
// needs the entry to decide about them.
func (p *publishOp) pendingEntry() *entry {
	switch t := &p.service.table; {
	case p.newChannel != nil:
		return t.newPendingEntry(*p.newChannel)
	case p.peer != "" && t.get(p.message.Channel) == nil:
		return t.newDirectEntry(p.author, p.peer)
	}
	return nil
}

// pendingEntry returns the entry of a channel that is being created with its first
// message, or nil.
func (t *table) pendingEntry(id channel.ID) *entry {
	e, _ := t.pending.Load(id)
	coming, _ := e.(*entry)
	return coming
}

// newPendingEntry returns the entry of a channel whose commit has not been applied to
// the table yet.
func (t *table) newPendingEntry(c channel.Channel) *entry {
	e := t.newEntry(c)
	e.scope = t.scopes.cellOrEmpty(c.Scope)
	return e
}

// createFirstChannel creates the channel of a first message.
func (p *publishOp) createFirstChannel(tx *kg.Tx) (*entry, error) {
	c := *p.newChannel
	if p.service.table.channelByName(c.Scope, c.Name) != "" {
		return nil, errRaced
	}
	if err := p.service.checkNewChannelIn(c.Scope, p.reader); err != nil {
		return nil, err
	}
	n, err := p.service.writeChannel(tx, &c)
	if err != nil {
		return nil, err
	}
	p.ownChanges += n
	return p.service.table.newPendingEntry(c).atTime(tx.Time()).asPrincipal(p.reader), nil
}

// createDirect creates the direct channel of a first message, unless the store has it
// and only the table lags behind.
func (p *publishOp) createDirect(tx *kg.Tx) (*entry, error) {
	e := p.service.table.newDirectEntry(p.author, p.peer).atTime(tx.Time())
	if err := e.mustPost(p.author); err != nil {
		return nil, err
	}
	made, err := channel.ReadRecord(tx.MatchOwn, p.message.Channel)
	if err != nil || made != nil {
		return e, err
	}
	n, err := p.service.writeDirectChannel(tx, p.author, p.peer)
	p.ownChanges += n
	return e, err
}
