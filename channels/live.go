package channels

import (
	"cmp"
	"slices"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

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
// against the agent's access: access changes often here, and must not end the feed.
func (f *Feed) watchFilter() kg.Filter {
	patterns := slices.Clone(f.channels.patterns)
	if list := f.channels.list(); len(list) <= kg.MaxPatterns-len(patterns) {
		for _, id := range list {
			patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence, Graph: id.MessagesGraph()})
		}
	} else {
		patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence})
	}
	return kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}}
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
			m, err = f.service.journal.Reread(f.ctx, m, f.agent)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *message.Message) int { return cmp.Compare(a.Channel, b.Channel) })
	return out, nil
}
