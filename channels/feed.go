package channels

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"sync"

	"koine/kg"
)

// Delivery is a message of one of many channels. Messages of many channels come in
// the order of the log; those of one commit in that of the ids of their channels.
type Delivery struct {
	*Message
	// Position is behind the message: to go on from there is to miss nothing and to
	// see nothing twice.
	Position kg.Position
}

// selection says which channels a feed is of, as things stand at the moment.
type selection struct {
	list func() []ChannelID // sorted or not
	has  func(e *entry) bool
	// patterns are those of which one changes whenever a channel comes to be in it.
	patterns []kg.Pattern
}

// channelsOf are the channels that the agent is a member of.
func (s *Service) channelsOf(by Caller, agent kg.AgentID) selection {
	reader := by.reader(agent)
	of := selection{
		list: func() []ChannelID { return s.table.joined(agent) },
		has:  func(e *entry) bool { return e.as(reader).reads(agent) && e.roles[agent] != "" },
	}
	for _, r := range roles {
		of.patterns = append(of.patterns, kg.Pattern{Predicate: r.property, Object: kg.IRI(string(agent))})
	}
	return of
}

// inboxOf are the channels that the agent is a member of, and the others that it
// reads and in which something was said to it alone or to few: through their scope,
// or because everybody reads them.
func (s *Service) inboxOf(by Caller, agent kg.AgentID) selection {
	of, reader := s.channelsOf(by, agent), by.reader(agent)
	of.list = func() []ChannelID { return s.table.inboxed(agent) }
	of.has = func(e *entry) bool { return e.as(reader).reads(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: propLaneReader, Object: kg.IRI(string(agent))})
	return of
}

// Feed is many channels as they go on. Close it when done.
type Feed struct {
	service *Service
	by      Caller
	agent   kg.AgentID
	ctx     context.Context
	of      selection
	keep    func(*Message) bool // which messages are told
	at      kg.Position         // up to where was told
	release func()
}

// Close ends the feed.
func (f *Feed) Close() {
	if f.release != nil {
		f.release()
	}
}

// StreamAll follows all channels that the caller is a member of from a position on,
// those that it joins later or that are made later included; nil is from now on, the
// zero Position from the beginning.
//
// Errors: CodePositionGone for a position of another log; CodeLimitExceeded for one
// stream too many; those of kg.Store.Watch.
func (s *Service) StreamAll(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.agent()
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, by, s.channelsOf(by, agent), from, func(*Message) bool { return true })
}

// StreamInbox is StreamAll of the messages that are for the caller: those that it
// did not write, and that are addressed to it, to a role that it had then, or to
// everybody. What is addressed to it or to such a role is there from every channel
// that it reads, member or not.
func (s *Service) StreamInbox(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.agent()
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, by, s.inboxOf(by, agent), from, s.inbox(agent))
}

// StreamScope is StreamAll of the channels of a scope that the caller may read, those of
// an intent's tasks included: a task is within its intent.
//
// Errors: those of GetScope too.
func (s *Service) StreamScope(ctx context.Context, by Caller, scope ScopeID, from *kg.Position) (*Feed, error) {
	agent, _, err := s.seeScope(by, scope)
	if err != nil {
		return nil, err
	}
	reader := by.reader(agent)
	of := selection{
		list: func() []ChannelID { return s.table.within(scope) },
		has: func(e *entry) bool {
			return e.as(reader).reads(agent) && e.Scope != "" && (e.Scope == scope || e.scope.get().Parent == scope)
		},
		patterns: []kg.Pattern{{Predicate: propScope}}, // of any: tasks come later, too
	}
	return s.follow(ctx, by, of, from, func(*Message) bool { return true })
}

// InboxQuery says what of an inbox is read.
type InboxQuery struct {
	After kg.Position // the zero Position is before everything
	// PageSize is clamped to 1…MaxPage; DefaultPage when 0. A page ends earlier where
	// its content might be more than MaxPageBytes.
	PageSize int
}

// Inbox reads the messages that are for the caller (StreamInbox), a page at a time.
// next is up to where was looked, and where the next page or a stream goes on; more
// tells that there may be others now. A page can be short, and even empty, with more
// behind it.
//
// Errors: CodePositionGone for a position of another log.
func (s *Service) Inbox(ctx context.Context, by Caller, q InboxQuery) (page []Delivery, next kg.Position, more bool, err error) {
	agent, err := by.agent()
	if err != nil {
		return nil, next, false, err
	}
	f, err := s.feed(ctx, by, s.inboxOf(by, agent), &q.After, s.inbox(agent))
	if err != nil {
		return nil, next, false, err
	}
	size, bytes := pageSize(q.PageSize), 0
	more, err = f.replay(maxLookedAt, func(d Delivery) bool {
		page = append(page, d)
		bytes += d.size()
		return len(page) < size && bytes <= MaxPageBytes-MaxMessageBytes // the next may be of any size
	})
	return page, f.at, more, err
}

// isFor tells whether the message is for an agent that reads its channel.
func (m *Message) isFor(agent kg.AgentID) bool {
	return m.Author != agent && (len(m.Recipients) == 0 || slices.Contains(m.Recipients, agent))
}

// inbox keeps what is for the agent: of a channel that it is no member of, what is
// addressed to it.
func (s *Service) inbox(agent kg.AgentID) func(*Message) bool {
	return func(m *Message) bool {
		return m.isFor(agent) && (len(m.Recipients) > 0 || s.table.get(m.Channel).roles[agent] != "")
	}
}

// follow makes a feed that goes on, and counts as a stream of the caller's.
func (s *Service) follow(ctx context.Context, by Caller, of selection, from *kg.Position, keep func(*Message) bool) (*Feed, error) {
	f, err := s.feed(ctx, by, of, from, keep)
	if err != nil {
		return nil, err
	}
	if err := f.admitted(); err != nil {
		return nil, err
	}
	release, err := s.openStream(by, "")
	if err != nil {
		return nil, err
	}
	f.release = sync.OnceFunc(release)
	return f, nil
}

func (s *Service) feed(ctx context.Context, by Caller, of selection, from *kg.Position, keep func(*Message) bool) (*Feed, error) {
	agent, err := by.agent()
	if err != nil {
		return nil, err
	}
	head := s.store.Head()
	f := &Feed{service: s, by: by, agent: agent, ctx: ctx, of: of, keep: keep, at: head}
	if from == nil {
		return f, nil
	}
	if f.at = *from; *from == (kg.Position{}) {
		f.at = kg.Position{Epoch: head.Epoch, Index: kg.EndOfCommit}
	}
	if f.at.Epoch != head.Epoch || f.at.Compare(head) > 0 {
		return nil, kg.Errorf(kg.CodePositionGone, "the position is of another log, or ahead of this one")
	}
	return f, nil
}

// Messages yields the messages behind the feed's position in order, and waits for
// more. It ends with CodeLimitExceeded for one stream too many, with the context's error, and with CodeClosed and CodeResync as a
// kg.Watcher does. It is used once, from one goroutine.
func (f *Feed) Messages() iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		stopped := false
		tell := func(d Delivery) bool {
			stopped = !yield(d, nil)
			return !stopped
		}
		var err error
		for more := true; more && err == nil && !stopped; {
			more, err = f.replay(maxLookedAt, tell)
		}
		if err == nil && !stopped {
			err = f.live(tell)
		}
		if err != nil && !stopped {
			yield(Delivery{}, err)
		}
	}
}

// admitted asks whether the caller may follow anything.
func (f *Feed) admitted() error {
	none := kg.Filter{Patterns: []kg.Pattern{{Predicate: kg.Sequence, Graph: ChannelID("none").RecordGraph()}}, View: kg.View{Principal: f.by.reader(f.agent), AllGraphs: true}}
	w, err := f.service.store.Watch(f.ctx, none, f.service.store.Head())
	if err == nil {
		w.Close()
	}
	return err
}

// told counts the messages of one commit, for their positions.
type told struct {
	revision kg.Revision
	index    uint32
}

// position is that behind a message, which is the last of its commit or not.
func (t *told) position(epoch kg.Epoch, r kg.Revision, last bool) kg.Position {
	if t.revision != r {
		*t = told{revision: r}
	} else {
		t.index++
	}
	if last {
		return kg.Position{Epoch: epoch, Revision: r, Index: kg.EndOfCommit}
	}
	return kg.Position{Epoch: epoch, Revision: r, Index: t.index}
}

// replay tells what stands behind the feed's position, of at most so many messages.
// more tells that it did not come to the end.
func (f *Feed) replay(most int, tell func(Delivery) bool) (more bool, err error) {
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: f.by.reader(f.agent), AllGraphs: true})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	m, err := f.merge(snapshot)
	if err != nil {
		return false, err
	}
	from, count := f.at, told{}
	for range most {
		now, err := m.next()
		if err != nil {
			return false, err
		}
		if now == nil {
			if end := snapshot.Position(); end.Compare(f.at) > 0 {
				f.at = end
			}
			return false, nil
		}
		position := count.position(from.Epoch, now.Revision, m.revision() != now.Revision)
		if now.Revision == from.Revision && count.index <= from.Index {
			continue // was told before
		}
		f.at = position
		if f.keep(now) && !tell(Delivery{now, position}) {
			return true, nil
		}
	}
	return true, nil
}

// live tells what comes, until the reader wants no more.
func (f *Feed) live(tell func(Delivery) bool) error {
	watcher, err := f.service.store.Watch(f.ctx, f.filter(), f.at)
	if err != nil {
		return err
	}
	defer watcher.Close()
	for events, err := range watcher.Commits() {
		if err != nil {
			return err
		}
		c := events[0].Commit
		list, err := f.in(c)
		if err != nil {
			return err
		}
		count := told{}
		for i, m := range list {
			f.at = count.position(f.at.Epoch, c.Revision, i == len(list)-1)
			if f.keep(m) && !tell(Delivery{m, f.at}) {
				return nil
			}
		}
		for i := range events {
			if events[i].Statement.Predicate != kg.Sequence {
				if err := watcher.Refilter(f.filter()); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// filter is of the messages of the channels, and of changes of which there are.
// koine itself looks, and asks for each message whether the agent may have it: who
// may see what changes often here, and ends nothing.
func (f *Feed) filter() kg.Filter {
	patterns := slices.Clone(f.of.patterns)
	if list := f.of.list(); len(list) <= kg.MaxPatterns-len(patterns) {
		for _, id := range list {
			patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence, Graph: id.MessagesGraph()})
		}
	} else {
		patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence})
	}
	return kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}}
}

// in reads the messages that a commit published in the channels, in their order.
func (f *Feed) in(c *kg.Commit) (out []*Message, err error) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, part := channelOf(ch.Quad.Graph)
		if ch.Op != kg.Add || ch.Quad.Predicate != kg.Sequence || part != journalPart || !f.of.has(f.service.table.get(id)) {
			continue
		}
		m, err := f.service.decoded.message(c, id, f.service.reading(f.agent))
		if err == nil && f.service.changedSince(m) {
			m, err = f.service.reread(f.ctx, m, f.agent)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Message) int { return cmp.Compare(a.Channel, b.Channel) })
	return out, nil
}

// reread gives a message as it is shown to the agent now.
func (s *Service) reread(ctx context.Context, m *Message, agent kg.AgentID) (*Message, error) {
	snapshot, err := s.system(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	list, err := readMessages(snapshot, m.Channel, m.Sequence, 1, s.reading(agent))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != m.ID {
		return nil, kg.Errorf(kg.CodeInternal, "message %d of a channel is gone", m.Sequence)
	}
	return list[0], nil
}

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

// publishedIn is the revision in which a channel got the message with a number, 0
// where it has none.
func publishedIn(snapshot *kg.Snapshot, id ChannelID, n int64) (kg.Revision, error) {
	for row, err := range snapshot.Numbered(id.MessagesGraph(), n) {
		if err != nil {
			return 0, err
		}
		list, err := snapshot.Assertions(row)
		if err != nil || len(list) == 0 {
			return 0, err
		}
		return list[0].Revision, nil
	}
	return 0, nil
}

// firstSince is the number of the first message of a channel that came with this
// revision or a later one. The last is looked at first: most channels have nothing
// new.
func firstSince(snapshot *kg.Snapshot, id ChannelID, count int64, r kg.Revision) (int64, error) {
	if r <= 1 {
		return 1, nil
	}
	var failed error
	since := func(n int64) bool {
		at, err := publishedIn(snapshot, id, n)
		failed = cmp.Or(failed, err)
		return failed != nil || at >= r
	}
	if count == 0 || !since(count) {
		return count + 1, failed
	}
	n := sort.Search(int(count), func(i int) bool { return since(int64(i) + 1) })
	return int64(n) + 1, failed
}
