package channels

import "koine/kg"

// Limits of retention.
const (
	MaxKeepMessages = 1_000_000
	// maxEvictions bounds the messages evicted with one publication. It is greater than
	// one so that a channel reaches its limit after the limit was lowered.
	maxEvictions = 4
)

// evictOldest removes the content of the oldest messages in the commit of a new
// message, so that at most KeepMessages messages keep their content. Sequence, time,
// author and kind of the messages stay. It returns the number of changes.
func (s *Service) evictOldest(tx *kg.Tx, e *entry, newest int64) (changes int, err error) {
	if e.KeepMessages == 0 {
		return 0, nil
	}
	graph := e.ID.MessagesGraph()
	gone, err := tx.CountOwn(graph, propEvicted)
	if err != nil {
		return 0, err
	}
	for i := int64(gone) + 1; i <= newest-e.KeepMessages && i <= int64(gone)+maxEvictions; i++ {
		id, err := messageAt(tx, e.ID, i)
		if err != nil {
			return changes, err
		}
		n, err := removeContent(tx, e.ID, id)
		if changes += n + 1; err != nil {
			return changes, err
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: id.Entity(), Predicate: propEvicted, Object: kg.Boolean(true), Graph: graph}}); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// messageAt returns the message of a channel with a sequence.
func messageAt(tx *kg.Tx, id ChannelID, n int64) (MessageID, error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.Sequence, Object: kg.Integer(n), Graph: id.MessagesGraph()}) {
		return messageIDIn(st.Subject), err
	}
	return "", kg.Errorf(kg.CodeInternal, "channel has no message %d", n)
}

// oldestKept returns the sequence of the oldest message that was not evicted.
func oldestKept(snapshot *kg.Snapshot, id ChannelID) (int64, error) {
	gone, err := countOf(snapshot, id, propEvicted)
	return gone + 1, err
}

// errEvicted reports a bound in the request that is before the oldest retained message.
func errEvicted(oldest int64, field string) *kg.Error {
	e := kg.Errorf(kg.CodePositionGone, "oldest retained message of the channel is %d", oldest).At(field)
	e.OldestSequence = oldest
	return e
}

// checkKeepMessages validates KeepMessages; 0 keeps all.
func checkKeepMessages(n int64) error {
	switch {
	case n < 0:
		return kg.Errorf(kg.CodeInvalid, "keepMessages must not be negative").At("keepMessages")
	case n > MaxKeepMessages:
		return errTooMuch("keepMessages", "keepMessages is %d; the limit is %d", n, MaxKeepMessages)
	}
	return nil
}
