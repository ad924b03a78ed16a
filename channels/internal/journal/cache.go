package journal

import (
	"sync"

	"koine/channels/channel"
	"koine/channels/message"
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
	channel  channel.ID

	once sync.Once // initializes the following, which is then immutable
	// public is the part that all readers of the channel may see, nil if the commit
	// published nothing. full also has the content that is addressed to some.
	public, full *message.Message
	err          error
}

// MessageIn returns the message that a commit published in the channel, as the viewer
// sees it, or nil if it published none. The result must not be modified.
func (j *Journal) MessageIn(c *kg.Commit, id channel.ID, by message.Viewer) (*message.Message, error) {
	m := j.decoded.slotFor(c.Revision, id)
	m.once.Do(func() { m.public, m.full, m.err = message.ReadFromCommit(c, id) })
	if m.err != nil || m.public == nil {
		return nil, m.err
	}
	return visibleMessage(m.public, m.full, by), nil
}

func (d *decodedCache) slotFor(r kg.Revision, id channel.ID) *cachedMessage {
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
func visibleMessage(open, whole *message.Message, by message.Viewer) *message.Message {
	m := open
	if m.Private && by.MayRead(m) {
		m = whole
	}
	if m.Answered == "" && m.Withheld == "" && by.MayRead(m) && !m.HasExpired(by.Now) {
		return m
	}
	changed := *m
	changed.RedactFor(by)
	return &changed
}
