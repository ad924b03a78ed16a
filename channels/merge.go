package channels

import (
	"cmp"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/message"
	"koine/kg"
)

// mergeReader reads the messages of many channels in log order.
type mergeReader struct {
	snapshot *kg.Snapshot
	by       message.Viewer
	heads    []*mergeHead // channels with more messages, in log order
}

// mergeHead is the read position of one channel.
type mergeHead struct {
	id       channel.ID
	next     int64       // the next sequence
	revision kg.Revision // the revision of the next message
}

// newMerge returns a reader that starts at the commit of the feed's position, or after
// it.
func (f *Feed) newMerge(snapshot *kg.Snapshot) (*mergeReader, error) {
	m := &mergeReader{snapshot: snapshot, by: f.service.journal.ViewerOf(f.agent)}
	first := f.position.Revision
	if f.position.Index == kg.EndOfCommit {
		first++
	}
	for _, id := range f.channels.list() {
		if !f.channels.has(f.service.table.Get(id)) {
			continue
		}
		count, err := journal.Count(snapshot, id)
		if err != nil {
			return nil, err
		}
		from, err := journal.FirstSince(snapshot, id, count, first)
		if err != nil {
			return nil, err
		}
		h := &mergeHead{id: id, next: from}
		if h.revision, err = journal.PublishRevision(snapshot, id, from); err != nil {
			return nil, err
		}
		if h.revision > 0 {
			m.heads = append(m.heads, h)
		}
	}
	slices.SortFunc(m.heads, (*mergeHead).compare)
	return m, nil
}

func (h *mergeHead) compare(other *mergeHead) int {
	return cmp.Or(cmp.Compare(h.revision, other.revision), cmp.Compare(h.id, other.id))
}

// next returns the next message, or nil after the last one.
func (m *mergeReader) next() (*message.Message, error) {
	if len(m.heads) == 0 {
		return nil, nil
	}
	h := m.heads[0]
	list, err := journal.Read(m.snapshot, h.id, h.next, 1, m.by)
	if err != nil {
		return nil, err
	}
	h.next++
	if h.revision, err = journal.PublishRevision(m.snapshot, h.id, h.next); err != nil {
		return nil, err
	}
	m.heads = m.heads[1:]
	if h.revision > 0 {
		at, _ := slices.BinarySearchFunc(m.heads, h, (*mergeHead).compare)
		m.heads = slices.Insert(m.heads, at, h)
	}
	return list[0], nil
}

// nextRevision returns the revision of the next message, or 0 after the last one.
func (m *mergeReader) nextRevision() kg.Revision {
	if len(m.heads) == 0 {
		return 0
	}
	return m.heads[0].revision
}
