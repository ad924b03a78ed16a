package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/kg"
)

// pendingEntry returns the entry of the channel that is created with the message, or
// nil if the channel exists. Its facts are written in the same commit, and the guard
// needs the entry to decide about them.
func (p *publishOp) pendingEntry() *access.Entry {
	switch t := p.service.table; {
	case p.newChannel != nil:
		return t.NewPendingEntry(*p.newChannel)
	case p.peer != "" && t.Get(p.message.Channel) == nil:
		return t.NewDirectEntry(p.author, p.peer)
	}
	return nil
}

// createFirstChannel creates the channel of a first message.
func (p *publishOp) createFirstChannel(tx *kg.Tx) (*access.Entry, error) {
	c := *p.newChannel
	if p.service.table.ChannelByName(c.Scope, c.Name) != "" {
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
	return p.service.table.NewPendingEntry(c).AtTime(tx.Time()).AsPrincipal(p.reader), nil
}

// createDirect creates the direct channel of a first message, unless the store has it
// and only the table lags behind.
func (p *publishOp) createDirect(tx *kg.Tx) (*access.Entry, error) {
	e := p.service.table.NewDirectEntry(p.author, p.peer).AtTime(tx.Time())
	if err := e.MustPost(p.author); err != nil {
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
