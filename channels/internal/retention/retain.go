package retention

import (
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
	graph := e.ID.MessagesGraph()
	gone, err := tx.CountOwn(graph, vocab.Evicted)
	if err != nil {
		return 0, err
	}
	for i := int64(gone) + 1; i <= newest-e.KeepMessages && i <= int64(gone)+maxEvictions; i++ {
		id, err := journal.MessageAt(tx, e.ID, i)
		if err != nil {
			return changes, err
		}
		n, err := message.RemoveContent(tx, e.ID, id)
		if changes += n + 1; err != nil {
			return changes, err
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: id.Entity(), Predicate: vocab.Evicted, Object: kg.Boolean(true), Graph: graph}}); err != nil {
			return changes, err
		}
	}
	return changes, nil
}
