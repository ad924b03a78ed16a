package channels

import "koine/kg"

// coming is the channel that is made with the message, as it will be; nil if it is
// there. Whoever may publish in it writes its facts in the same commit.
func (p *publishing) coming() *entry {
	switch t := &p.service.table; {
	case p.make != nil:
		return t.unborn(*p.make)
	case p.direct != "" && t.get(p.message.Channel) == nil:
		return t.directOf(p.author, p.direct)
	}
	return nil
}

// comes is a channel that is just being made with its first message, nil for another.
func (t *table) comes(id ChannelID) *entry {
	e, _ := t.coming.Load(id)
	coming, _ := e.(*entry)
	return coming
}

// unborn is a channel before the commit that makes it is followed.
func (t *table) unborn(c Channel) *entry {
	e := t.newEntry(c)
	e.scope = t.scopes.home(c.Scope)
	return e
}

// makeFirst makes the channel that a message is the first of.
func (p *publishing) makeFirst(tx *kg.Tx) (*entry, error) {
	c := *p.make
	if p.service.table.channelIn(c.Scope, c.Name) != "" {
		return nil, errRaced
	}
	if err := p.service.mayHaveChannel(c.Scope, p.reader); err != nil {
		return nil, err
	}
	n, err := p.service.make(tx, &c)
	if err != nil {
		return nil, err
	}
	p.own += n
	return p.service.table.unborn(c).at(tx.Time()).as(p.reader), nil
}

// makeDirect makes the direct channel that a message is the first of, unless the record
// has it and only the table does not know of it yet.
func (p *publishing) makeDirect(tx *kg.Tx) (*entry, error) {
	e := p.service.table.directOf(p.author, p.direct).at(tx.Time())
	if err := e.mustPost(p.author); err != nil {
		return nil, err
	}
	made, err := readChannel(tx.MatchOwn, p.message.Channel)
	if err != nil || made != nil {
		return e, err
	}
	n, err := p.service.makeDirect(tx, p.author, p.direct)
	p.own += n
	return e, err
}
