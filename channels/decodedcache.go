package channels

import (
	"sync"

	"koine/kg"
)

// decodedMessages is the size of the decoded-message cache. Streams of one channel wake
// up together, and the first one decodes for all.
const decodedMessages = 16

// decodedCache decodes messages from their commits, each once for all streams of its
// channel.
type decodedCache struct {
	mu    sync.Mutex // guards slots, but not the cached messages
	slots [decodedMessages]*cachedMessage
}

// cachedMessage is the message that a commit published in a channel.
type cachedMessage struct {
	revision kg.Revision
	channel  ChannelID

	once sync.Once // initializes the following, which is then immutable
	// public is the part that all readers of the channel may see, nil if the commit
	// published nothing. full also has the content that is addressed to some.
	public, full *Message
	err          error
}

// messageIn returns the message that a commit published in the channel, as the viewer
// sees it, or nil if it published none. The result must not be modified.
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

// visibleMessage returns a message as the viewer sees it. It returns a shared message
// if nothing has to be hidden.
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
