package channels

import "koine/kg"

// pendingEntry is the channel that is made with the message, as it will be; nil if it is
// there. Whoever may publish in it writes its facts in the same commit.
func (p *publishOp) pendingEntry() *entry {
	switch t := &p.service.table; {
	case p.newChannel != nil:
		return t.newPendingEntry(*p.newChannel)
	case p.peer != "" && t.get(p.message.Channel) == nil:
		return t.newDirectEntry(p.author, p.peer)
	}
	return nil
}

// pendingEntry is a channel that is just being made with its first message, nil for another.
func (t *table) pendingEntry(id ChannelID) *entry {
	e, _ := t.pending.Load(id)
	coming, _ := e.(*entry)
	return coming
}

// newPendingEntry is a channel before the commit that makes it is followed.
func (t *table) newPendingEntry(c Channel) *entry {
	e := t.newEntry(c)
	e.scope = t.scopes.cellOrEmpty(c.Scope)
	return e
}

// createFirstChannel makes the channel that a message is the first of.
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

// createDirect makes the direct channel that a message is the first of, unless the record
// has it and only the table does not know of it yet.
func (p *publishOp) createDirect(tx *kg.Tx) (*entry, error) {
	e := p.service.table.newDirectEntry(p.author, p.peer).atTime(tx.Time())
	if err := e.mustPost(p.author); err != nil {
		return nil, err
	}
	made, err := readChannel(tx.MatchOwn, p.message.Channel)
	if err != nil || made != nil {
		return e, err
	}
	n, err := p.service.writeDirectChannel(tx, p.author, p.peer)
	p.ownChanges += n
	return e, err
}
