package channels

import (
	"cmp"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/message"
	"koine/kg"
)

// positionCounter assigns positions to the messages of a commit.
type positionCounter struct {
	revision kg.Revision
	index    uint32
}

// nextPosition returns the position after a message; last reports that it is the last
// one of its commit.
func (t *positionCounter) nextPosition(epoch kg.Epoch, r kg.Revision, last bool) kg.Position {
	if t.revision != r {
		*t = positionCounter{revision: r}
	} else {
		t.index++
	}
	if last {
		return kg.Position{Epoch: epoch, Revision: r, Index: kg.EndOfCommit}
	}
	return kg.Position{Epoch: epoch, Revision: r, Index: t.index}
}

// replayStored yields up to most stored messages after the feed's position. more
// reports that it did not reach the end.
func (f *Feed) replayStored(most int, tell func(Delivery) bool) (more bool, err error) {
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: f.by.ReaderPrincipal(f.agent), AllGraphs: true})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	m, err := f.newMerge(snapshot)
	if err != nil {
		return false, err
	}
	if f.channels.ended != nil {
		if err := f.channels.ended(); err != nil {
			return false, err
		}
	}
	from, count := f.position, positionCounter{}
	for range most {
		now, err := m.next()
		if err != nil {
			return false, err
		}
		if now == nil {
			if end := snapshot.Position(); end.Compare(f.position) > 0 {
				f.position = end
			}
			return false, nil
		}
		position := count.nextPosition(from.Epoch, now.Revision, m.nextRevision() != now.Revision)
		if now.Revision == from.Revision && count.index <= from.Index {
			continue // yielded before
		}
		f.position = position
		if f.include(now) && !tell(Delivery{now, position}) {
			return true, nil
		}
	}
	return true, nil
}

// streamLive yields new messages until tell returns false.
func (f *Feed) streamLive(tell func(Delivery) bool) error {
	watcher, err := f.service.store.Watch(f.ctx, f.watchFilter(), f.position)
	if err != nil {
		return err
	}
	defer watcher.Close()
	for events, err := range watcher.Commits() {
		if err != nil {
			return err
		}
		if f.channels.ended != nil {
			if err := f.channels.ended(); err != nil {
				return err
			}
		}
		c := events[0].Commit
		list, err := f.messagesIn(c)
		if err != nil {
			return err
		}
		count := positionCounter{}
		for i, m := range list {
			f.position = count.nextPosition(f.position.Epoch, c.Revision, i == len(list)-1)
			if f.include(m) && !tell(Delivery{m, f.position}) {
				return nil
			}
		}
		for i := range events {
			if events[i].Statement.Predicate != kg.Sequence {
				if err := watcher.Refilter(f.watchFilter()); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// watchFilter returns the filter for the messages of the channels and for changes of
// the set of channels. It watches as the system principal, and each message is checked
// against the agent's access: access changes often here, and must not end the feed. Nor must
// a quarantine: it does not concern messages.
func (f *Feed) watchFilter() kg.Filter {
	patterns := slices.Clone(f.channels.patterns)
	if f.channels.open {
		patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence})
	} else if list := f.channels.list(); len(list) <= kg.MaxPatterns-len(patterns) {
		for _, id := range list {
			patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence, Graph: id.MessagesGraph()})
		}
	} else {
		patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence})
	}
	return kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}}
}

// messagesIn returns the messages that a commit published in the channels, sorted by
// channel.
func (f *Feed) messagesIn(c *kg.Commit) (out []*message.Message, err error) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, part := channel.OfGraph(ch.Quad.Graph)
		if ch.Op != kg.Add || ch.Quad.Predicate != kg.Sequence || part != channel.JournalPart || !f.channels.has(f.service.table.Get(id)) {
			continue
		}
		m, err := f.service.journal.MessageIn(c, id, f.service.journal.ViewerOf(f.agent))
		if err == nil && f.service.journal.MayDiffer(m) {
			m, err = f.service.journal.Reread(f.ctx, m, f.service.journal.ViewerOf(f.agent))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *message.Message) int { return cmp.Compare(a.Channel, b.Channel) })
	return out, nil
}

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
