package journal

import (
	"sort"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// SequenceOf returns the sequence of a message of the channel.
func SequenceOf(snapshot *kg.Snapshot, id channel.ID, m message.ID, field string) (int64, error) {
	for st, err := range snapshot.Match(kg.Pattern{Subject: m.Entity(), Predicate: kg.Sequence, Graph: id.MessagesGraph()}) {
		return vocab.IntegerOf(st.Object), err
	}
	return 0, message.ErrNotInChannel(field)
}

// publicationOf returns the assertion of the message with a sequence (its source, time,
// and revision), or nil.
func publicationOf(snapshot *kg.Snapshot, id channel.ID, n int64) (*kg.Assertion, error) {
	for row, err := range snapshot.Numbered(id.MessagesGraph(), n) {
		if err != nil {
			return nil, err
		}
		list, err := snapshot.Assertions(row)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return &list[0], nil
	}
	return nil, nil
}

// PublishRevision returns the revision that published the message with a sequence, or
// 0.
func PublishRevision(snapshot *kg.Snapshot, id channel.ID, n int64) (kg.Revision, error) {
	a, err := publicationOf(snapshot, id, n)
	if a == nil || err != nil {
		return 0, err
	}
	return a.Revision, nil
}

// FirstNumber returns the sequence of the first of count messages whose publication
// satisfies test. test must be monotonic: once true, true for all later messages.
func FirstNumber(snapshot *kg.Snapshot, id channel.ID, count int64, test func(*kg.Assertion) bool) (int64, error) {
	var failed error
	n := sort.Search(int(count), func(i int) bool {
		if failed != nil {
			return true
		}
		a, err := publicationOf(snapshot, id, int64(i)+1)
		failed = err
		return a == nil || test(a)
	})
	return int64(n) + 1, failed
}

// FirstSince returns the sequence of the first message published at revision r or
// later. It checks the last message first, because most channels have no new ones.
func FirstSince(snapshot *kg.Snapshot, id channel.ID, count int64, r kg.Revision) (int64, error) {
	if r <= 1 || count == 0 {
		return 1, nil
	}
	if last, err := PublishRevision(snapshot, id, count); err != nil || last < r {
		return count + 1, err
	}
	return FirstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return a.Revision >= r })
}

// MessageAt returns the message of a channel with a sequence.
func MessageAt(tx *kg.Tx, id channel.ID, n int64) (message.ID, error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.Sequence, Object: kg.Integer(n), Graph: id.MessagesGraph()}) {
		return message.IDIn(st.Subject), err
	}
	return "", kg.Errorf(kg.CodeInternal, "channel has no message %d", n)
}

// OldestKept returns the sequence of the oldest message that was not evicted: one more than
// the count of evicted messages, so 1 for a channel without messages. Retracted and expired messages count
// as kept.
func OldestKept(snapshot *kg.Snapshot, id channel.ID) (int64, error) {
	gone, err := countOf(snapshot, id, vocab.Evicted)
	return gone + 1, err
}
