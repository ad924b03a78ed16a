package channels

import (
	"sync"

	"koine/kg"
)

// decodedMessages is of how many of the newest messages is kept what they are: streams
// of a channel are woken together, and whoever is first reads for all.
const decodedMessages = 16

// decodedCache reads messages from their commits, each once for all who follow its channel.
type decodedCache struct {
	mu    sync.Mutex // guards places, not what is in them
	slots [decodedMessages]*cachedMessage
}

// cachedMessage is what a commit published in a channel, whoever may see what of it.
type cachedMessage struct {
	revision kg.Revision
	channel  ChannelID

	once sync.Once // of what follows, which is not changed then
	// open is what all who read the channel may know, nil if the commit published
	// nothing; whole has what is addressed to some, too.
	public, full *Message
	err          error
}

// messageIn reads the message that a commit published in the channel, as it is shown to
// who reads; nil if it published none. It is not to be changed.
func (d *decodedCache) messageIn(c *kg.Commit, id ChannelID, by viewer) (*Message, error) {
	m := d.slotFor(c.Revision, id)
	m.once.Do(func() { m.public, m.full, m.err = readFromCommit(c, id) })
	if m.err != nil || m.public == nil {
		return nil, m.err
	}
	return visibleMessage(m.public, m.full, by), nil
}

func (d *decodedCache) slotFor(r kg.Revision, id ChannelID) *cachedMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.slots[r%decodedMessages]
	if *p == nil || (*p).revision != r || (*p).channel != id {
		*p = &cachedMessage{revision: r, channel: id}
	}
	return *p
}

// visibleMessage is a message as it is shown to who reads: itself, where nothing of it has to be
// hidden.
func visibleMessage(open, whole *Message, by viewer) *Message {
	m := open
	if m.Private && m.isReadableBy(by.agent) {
		m = whole
	}
	if m.Answered == "" && m.Withheld == "" && m.isReadableBy(by.agent) && !m.hasExpired(by.now) {
		return m
	}
	changed := *m
	changed.redactFor(by)
	return &changed
}
