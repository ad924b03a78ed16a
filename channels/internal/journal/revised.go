package journal

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// revisedIndex tracks messages that must be shown differently from their commit in the
// log, because a later commit removed content or answered a request. Streams that lag
// behind and read from the log reread such messages from the store. It covers the
// commits since the start of the process, and no stream reads the log from before its
// own start.
type revisedIndex struct {
	withheld sync.Map // channel.ID → kg.Revision, the last one that removed content
	answered sync.Map // channel.ID → kg.Revision, the last one that answered a request
	evicted  sync.Map // channel.ID → int64, the last sequence that may have been evicted
}

// observeCommit updates the index of revised messages (kg.Store.Observe).
func (j *Journal) observeCommit(c *kg.Commit) {
	var evicted []kg.Term
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Op == kg.Add && ch.Quad.Predicate == vocab.Evicted {
			evicted = append(evicted, ch.Quad.Subject)
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		q := &ch.Quad
		switch {
		case ch.Op == kg.Add && q.Predicate == vocab.Evicted:
			if id, in := messagesGraphOf(q.Graph); in {
				if last, published := j.evictedUpTo(c, id); published {
					storeMax(&j.revised.evicted, id, last)
				} else { // the messages of an ended intent
					storeMax(&j.revised.withheld, id, c.Revision)
				}
			}
		case ch.Op == kg.Add && q.Predicate == vocab.Answered:
			if id, in := messagesGraphOf(q.Graph); in {
				storeMax(&j.revised.answered, id, c.Revision)
			}
		case ch.Op == kg.Add && (q.Predicate == vocab.RetractedBy || q.Predicate == vocab.Expired),
			ch.Op == kg.Remove && len(ch.After) == 0 && slices.Contains(message.ContentProperties, q.Predicate) && !slices.Contains(evicted, q.Subject):
			if id, in := messagesGraphOf(q.Graph); in {
				storeMax(&j.revised.withheld, id, c.Revision)
			}
		}
	}
}

// messagesGraphOf returns the channel of a journal or partition graph.
func messagesGraphOf(graph kg.Term) (id channel.ID, in bool) {
	id, part := channel.OfGraph(graph)
	return id, part == channel.JournalPart || part == channel.PartitionPart
}

// evictedUpTo returns the last sequence that a commit may have evicted if it publishes a message, which
// spares the KeepMessages messages up to that one. Other evictions spare none.
func (j *Journal) evictedUpTo(c *kg.Commit, id channel.ID) (last int64, published bool) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Op == kg.Add && ch.Quad.Predicate == kg.Sequence && ch.Quad.Graph == id.MessagesGraph() {
			last, published = max(last, vocab.IntegerOf(ch.Quad.Object)), true
		}
	}
	if e := j.table.Get(id); e != nil {
		last -= e.KeepMessages
	}
	return last, published
}

// storeMax raises the value of a channel to at least to.
func storeMax[T cmp.Ordered](m *sync.Map, id channel.ID, to T) {
	for {
		last, known := m.LoadOrStore(id, to)
		if !known || last.(T) >= to || m.CompareAndSwap(id, last, to) {
			return
		}
	}
}

// MayDiffer reports whether a message decoded from the log may be outdated.
func (j *Journal) MayDiffer(m *message.Message) bool {
	if m.Withheld == message.Expired {
		return true
	}
	if gone, ok := j.revised.evicted.Load(m.Channel); ok && m.Sequence <= gone.(int64) {
		return true
	}
	if last, ok := j.revised.withheld.Load(m.Channel); ok && last.(kg.Revision) > m.Revision {
		return true
	}
	last, ok := j.revised.answered.Load(m.Channel)
	return ok && m.Interaction == message.Request && !m.ExpiresAt.IsZero() && last.(kg.Revision) > m.Revision
}

// Reread returns a message as the viewer sees it now.
func (j *Journal) Reread(ctx context.Context, m *message.Message, by message.Viewer) (*message.Message, error) {
	snapshot, err := j.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	list, err := Read(snapshot, m.Channel, m.Sequence, 1, by)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != m.ID {
		return nil, kg.Errorf(kg.CodeInternal, "message %d of a channel is missing", m.Sequence)
	}
	return list[0], nil
}
