package channels

import "koine/kg"

// Bounds of retention.
const (
	MaxKeepMessages = 1_000_000
	// maxEvictions bounds how many messages lose their content with one that is
	// published. It is more than one, so that a channel gets to its bound when that was
	// lowered.
	maxEvictions = 4
)

// evictOldest takes the content of the oldest messages away, in the commit of one that is
// published, so that no more than KeepMessages keep it, and tells of how many
// statements that was. What a message was, when and by whom stays, and its number
// above all.
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

// messageAt is the message of a channel that has a number.
func messageAt(tx *kg.Tx, id ChannelID, n int64) (MessageID, error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.Sequence, Object: kg.Integer(n), Graph: id.MessagesGraph()}) {
		return messageIDIn(st.Subject), err
	}
	return "", kg.Errorf(kg.CodeInternal, "a channel has no message %d", n)
}

// oldestKept is the number of the oldest message that keeps its content.
func oldestKept(snapshot *kg.Snapshot, id ChannelID) (int64, error) {
	gone, err := countOf(snapshot, id, propEvicted)
	return gone + 1, err
}

// errEvicted is about a place in a channel in front of what is left, which a member of the
// request says.
func errEvicted(oldest int64, field string) *kg.Error {
	e := kg.Errorf(kg.CodePositionGone, "the oldest message that is left in the channel is %d", oldest).At(field)
	e.OldestSequence = oldest
	return e
}

// checkKeepMessages refuses what is no number of messages; 0 keeps all.
func checkKeepMessages(n int64) error {
	switch {
	case n < 0:
		return kg.Errorf(kg.CodeInvalid, "a channel keeps a number of messages, or 0 for all").At("keepMessages")
	case n > MaxKeepMessages:
		return errTooMuch("keepMessages", "%d messages are more than the %d that can be said", n, MaxKeepMessages)
	}
	return nil
}
