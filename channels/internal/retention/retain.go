package retention

import (
	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// maxEvictions bounds the messages evicted with one publication. It is greater than one
// so that a channel reaches its limit after the limit was lowered.
const maxEvictions = 4

// EvictOldest removes the content of the oldest messages in the commit of a new
// message, so that at most KeepMessages messages keep their content. Sequence, time,
// author and kind of the messages stay. It returns the number of changes.
func EvictOldest(tx *kg.Tx, e *access.Entry, newest int64) (changes int, err error) {
	if e.KeepMessages == 0 {
		return 0, nil
	}
	gone, err := tx.CountOwn(e.ID.MessagesGraph(), vocab.Evicted)
	if err != nil {
		return 0, err
	}
	return evict(tx, e.ID, int64(gone)+1, min(newest-e.KeepMessages, int64(gone)+maxEvictions), 0)
}

// evict removes the content of the messages from the sequence first to last, which must be
// the oldest that have content. It stops behind most changes, or MaxExpiryBytes of content; 0
// means no limit of changes.
func evict(tx *kg.Tx, id channel.ID, first, last int64, most int) (changes int, err error) {
	graph := id.MessagesGraph()
	bytes := 0
	for i := first; i <= last && (most == 0 || changes < most) && bytes < MaxExpiryBytes; i++ {
		m, err := journal.MessageAt(tx, id, i)
		if err != nil {
			return changes, err
		}
		n, size, err := message.RemoveContent(tx, id, m)
		bytes += size
		if changes += n + 1; err != nil {
			return changes, err
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: m.Entity(), Predicate: vocab.Evicted, Object: kg.Boolean(true), Graph: graph}}); err != nil {
			return changes, err
		}
	}
	return changes, nil
}
