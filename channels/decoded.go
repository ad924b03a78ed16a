package channels

import (
	"sync"

	"koine/kg"
)

// decodedMessages is of how many of the newest messages is kept what they are: streams
// of a channel are woken together, and whoever is first reads for all.
const decodedMessages = 16

// decoded reads messages from their commits, each once for all who follow its channel.
type decoded struct {
	mu     sync.Mutex // guards places, not what is in them
	places [decodedMessages]*decodedMessage
}

// decodedMessage is what a commit published in a channel, whoever may see what of it.
type decodedMessage struct {
	revision kg.Revision
	channel  ChannelID

	once sync.Once // of what follows, which is not changed then
	// open is what all who read the channel may know, nil if the commit published
	// nothing; whole has what is addressed to some, too.
	open, whole *Message
	err         error
}

// message reads the message that a commit published in the channel, as it is shown to
// who reads; nil if it published none. It is not to be changed.
func (d *decoded) message(c *kg.Commit, id ChannelID, by reading) (*Message, error) {
	m := d.place(c.Revision, id)
	m.once.Do(func() { m.open, m.whole, m.err = readIn(c, id) })
	if m.err != nil || m.open == nil {
		return nil, m.err
	}
	return shown(m.open, m.whole, by), nil
}

func (d *decoded) place(r kg.Revision, id ChannelID) *decodedMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.places[r%decodedMessages]
	if *p == nil || (*p).revision != r || (*p).channel != id {
		*p = &decodedMessage{revision: r, channel: id}
	}
	return *p
}

// shown is a message as it is shown to who reads: itself, where nothing of it has to be
// hidden.
func shown(open, whole *Message, by reading) *Message {
	m := open
	if m.Private && m.readBy(by.agent) {
		m = whole
	}
	if m.Answered == "" && m.Withheld == "" && m.readBy(by.agent) && !m.expired(by.now) {
		return m
	}
	changed := *m
	changed.show(by)
	return &changed
}
