package channels

import (
	"cmp"
	"slices"

	"koine/kg"
)

// merge reads many channels as one, in the order of the log.
type merge struct {
	snapshot *kg.Snapshot
	by       reading
	heads    []*head // of those that have more, the next one first
}

// head is how far one channel of a merge was read.
type head struct {
	id       ChannelID
	next     int64       // the number that comes next
	revision kg.Revision // in which it was published
}

// merge begins with the commit of the feed's position, or behind it.
func (f *Feed) merge(snapshot *kg.Snapshot) (*merge, error) {
	m := &merge{snapshot: snapshot, by: f.service.reading(f.agent)}
	first := f.at.Revision
	if f.at.Index == kg.EndOfCommit {
		first++
	}
	for _, id := range f.of.list() {
		if !f.of.has(f.service.table.get(id)) {
			continue
		}
		count, err := countMessages(snapshot, id)
		if err != nil {
			return nil, err
		}
		from, err := firstSince(snapshot, id, count, first)
		if err != nil {
			return nil, err
		}
		h := &head{id: id, next: from}
		if h.revision, err = publishedIn(snapshot, id, from); err != nil {
			return nil, err
		}
		if h.revision > 0 {
			m.heads = append(m.heads, h)
		}
	}
	slices.SortFunc(m.heads, (*head).compare)
	return m, nil
}

func (h *head) compare(other *head) int {
	return cmp.Or(cmp.Compare(h.revision, other.revision), cmp.Compare(h.id, other.id))
}

// next reads the next message, nil behind the last.
func (m *merge) next() (*Message, error) {
	if len(m.heads) == 0 {
		return nil, nil
	}
	h := m.heads[0]
	list, err := readMessages(m.snapshot, h.id, h.next, 1, m.by)
	if err != nil {
		return nil, err
	}
	h.next++
	if h.revision, err = publishedIn(m.snapshot, h.id, h.next); err != nil {
		return nil, err
	}
	m.heads = m.heads[1:]
	if h.revision > 0 {
		at, _ := slices.BinarySearchFunc(m.heads, h, (*head).compare)
		m.heads = slices.Insert(m.heads, at, h)
	}
	return list[0], nil
}

// revision is that of the next message, 0 behind the last.
func (m *merge) revision() kg.Revision {
	if len(m.heads) == 0 {
		return 0
	}
	return m.heads[0].revision
}
