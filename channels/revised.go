package channels

import (
	"cmp"
	"slices"
	"sync"

	"koine/kg"
)

// revisedIndex is what is known of messages that are shown in another way than the log has
// them, because a later commit took content away or answered a request: who lags behind
// and reads the log reads these again. It is made of the commits since the start, and a
// stream reads the log from behind its own start only.
type revisedIndex struct {
	withheld sync.Map // ChannelID → kg.Revision, the newest in which content was taken away
	answered sync.Map // ChannelID → kg.Revision, the newest in which a request was answered
	evicted  sync.Map // ChannelID → int64, up to which sequence messages may have been evicted
}

// observeCommit takes a commit in (kg.Store.Observe).
func (s *Service) observeCommit(c *kg.Commit) {
	var evicted []kg.Term
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Op == kg.Add && ch.Quad.Predicate == propEvicted {
			evicted = append(evicted, ch.Quad.Subject)
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		q := &ch.Quad
		switch {
		case ch.Op == kg.Add && q.Predicate == propEvicted:
			if id, in := messagesGraphOf(q.Graph); in {
				storeMax(&s.revised.evicted, id, s.evictedUpTo(c, id))
			}
		case ch.Op == kg.Add && q.Predicate == propAnswered:
			if id, in := messagesGraphOf(q.Graph); in {
				storeMax(&s.revised.answered, id, c.Revision)
			}
		case ch.Op == kg.Add && (q.Predicate == propRetractedBy || q.Predicate == propExpired),
			ch.Op == kg.Remove && len(ch.After) == 0 && slices.Contains(contentProperties, q.Predicate) && !slices.Contains(evicted, q.Subject):
			if id, in := messagesGraphOf(q.Graph); in {
				storeMax(&s.revised.withheld, id, c.Revision)
			}
		}
	}
}

// messagesGraphOf is the channel whose messages, or whose private ones, a graph holds.
func messagesGraphOf(graph kg.Term) (id ChannelID, in bool) {
	id, part := channelOfGraph(graph)
	return id, part == journalPart || part == partitionPart
}

// evictedUpTo is the last sequence that a commit may have evicted: it comes with a
// message, in front of which the channel keeps so many.
func (s *Service) evictedUpTo(c *kg.Commit, id ChannelID) (last int64) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Op == kg.Add && ch.Quad.Predicate == kg.Sequence && ch.Quad.Graph == id.MessagesGraph() {
			last = max(last, integerValue(ch.Quad.Object))
		}
	}
	if e := s.table.get(id); e != nil {
		last -= e.KeepMessages
	}
	return last
}

// storeMax makes what is kept for a channel at least so much.
func storeMax[T cmp.Ordered](m *sync.Map, id ChannelID, to T) {
	for {
		last, known := m.LoadOrStore(id, to)
		if !known || last.(T) >= to || m.CompareAndSwap(id, last, to) {
			return
		}
	}
}

// mayDiffer tells whether a message that the log has may have to be shown in another way
// by now.
func (r *revisedIndex) mayDiffer(m *Message) bool {
	if m.Withheld == Expired {
		return true
	}
	if gone, ok := r.evicted.Load(m.Channel); ok && m.Sequence <= gone.(int64) {
		return true
	}
	if last, ok := r.withheld.Load(m.Channel); ok && last.(kg.Revision) > m.Revision {
		return true
	}
	last, ok := r.answered.Load(m.Channel)
	return ok && m.Interaction == Request && !m.ExpiresAt.IsZero() && last.(kg.Revision) > m.Revision
}
