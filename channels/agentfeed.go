package channels

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// MaxPresenceBacklog is the number of agents with a latest presence that waits for a reader of
// an AgentFeed.
const MaxPresenceBacklog = 256

// PresenceChange is a change of an agent's presence.
type PresenceChange struct {
	Agent  kg.AgentID
	Status string // as package presence names it
	Since  time.Time
}

// AgentEvent is one event of an AgentFeed. Exactly one of Message, Control, Signal and
// Presence is set.
type AgentEvent struct {
	Message  *message.Message // must not be modified
	Control  *Control
	Signal   *Signal
	Presence *PresenceChange
	// Position resumes the feed after the event. Signals and presence are not in the log
	// and have the zero Position.
	Position kg.Position
}

// AgentFeed tells an agent the events of its channels. Call Close when done.
type AgentFeed struct {
	service *Service
	by      Caller
	agent   kg.AgentID
	ctx     context.Context
	// joined are the channels that the agent is a member of as of the last commit that
	// was read. It follows from the log alone, so that a resumed feed tells the same.
	joined   map[channel.ID]bool
	position kg.Position // after the last yielded event of the log
	stored   kg.Revision // messages up to this revision are read from the store
	watcher  *kg.Watcher
	listener *listener
	release  func()
}

// FollowAgent follows all channels that the acting agent is a member of, those that it
// joins later among them, by one watcher: their messages and changes in the order of the
// log, from when it joined until it left; its own joining and leaving; the creation of
// other channels that it can find; and live the signals in its channels and the presence of
// their other members. It starts after the position from: nil means now, and the zero
// Position the beginning of the log.
//
// Events of the log are told without a gap or a duplicate from any Position that the feed
// gave. Of a channel that the agent can no longer read, only its own joining and leaving
// and the deletion are told. A slow reader misses signals, the oldest of each burst first
// (Signal.Dropped); of each agent it gets the latest presence.
//
// The feed counts as one of the caller's open streams.
//
// Errors: CodePositionGone for a position of another log, or before the retained log or
// history; CodeLimitExceeded for too many open streams or listeners; those of
// kg.Store.Watch.
func (s *Service) FollowAgent(ctx context.Context, by Caller, from *kg.Position) (*AgentFeed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	head := s.store.Head()
	f := &AgentFeed{service: s, by: by, agent: agent, ctx: ctx, position: head, stored: head.Revision}
	if from != nil {
		if f.position = *from; *from == (kg.Position{}) {
			f.position = s.store.Oldest()
		}
		if err := s.store.CheckPosition(f.position); err != nil {
			return nil, err
		}
	}
	start := f.position
	if start.Index != kg.EndOfCommit && start.Revision > 0 { // inside a commit, which is read again
		start = kg.Position{Epoch: start.Epoch, Revision: start.Revision - 1, Index: kg.EndOfCommit}
	}
	if f.joined, err = s.joinedAt(ctx, agent, start.Revision); err != nil {
		return nil, err
	}
	if f.release, err = s.openStream(by, ""); err != nil {
		return nil, err
	}
	if err := f.checkAdmission(); err != nil {
		f.release()
		return nil, err
	}
	if f.watcher, err = s.store.Watch(ctx, f.watchFilter(), start); err != nil {
		f.release()
		return nil, err
	}
	f.listener = newListener(f.watcher.Nudge)
	if err := s.signals.add(f.listener, slices.Collect(maps.Keys(f.joined))...); err != nil {
		f.watcher.Close()
		f.release()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.signals.remove(f.listener) })
	release := f.release
	f.release = sync.OnceFunc(func() {
		stop()
		s.signals.remove(f.listener)
		f.watcher.Close()
		release()
	})
	return f, nil
}

// Close stops the feed.
func (f *AgentFeed) Close() { f.release() }

// Position returns the position after the last event of the log that was told.
func (f *AgentFeed) Position() kg.Position { return f.position }

// joinedAt returns the channels that an agent was a member of as of a revision.
func (s *Service) joinedAt(ctx context.Context, agent kg.AgentID, r kg.Revision) (map[channel.ID]bool, error) {
	joined := map[channel.ID]bool{}
	if r == 0 {
		return joined, nil
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true, At: r})
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		gone := *kg.AsError(err)
		gone.Code = kg.CodePositionGone
		return nil, &gone
	}
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for _, p := range channel.MemberPatterns(agent) {
		for st, err := range snapshot.Match(p) {
			if err != nil {
				return nil, err
			}
			if id, part := channel.OfGraph(st.Graph); part == channel.RecordPart && st.Subject == id.Entity() {
				joined[id] = true
			}
		}
	}
	for id := range joined {
		for _, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Predicate: vocab.Deleted, Graph: id.RecordGraph()}) {
			if err != nil {
				return nil, err
			}
			delete(joined, id)
		}
	}
	return joined, nil
}

// checkAdmission returns an error if the caller may not watch the store at all.
func (f *AgentFeed) checkAdmission() error {
	none := Feed{service: f.service, by: f.by, agent: f.agent, ctx: f.ctx}
	return none.checkAdmission()
}

// watchFilter returns the filter for the joined channels, for changes of the agent's
// membership and for new channels. It watches as the system principal, and each event is
// checked against the agent's access: see Feed.watchFilter.
func (f *AgentFeed) watchFilter() kg.Filter {
	own := append(channel.MemberPatterns(f.agent), kg.Pattern{Predicate: vocab.Type, Object: vocab.ClassChannel})
	patterns := append(make([]kg.Pattern, 0, len(own)+2*min(len(f.joined), kg.MaxPatterns)), own...) // there are many feeds
	if 2*len(f.joined) <= kg.MaxPatterns-len(patterns) {
		for id := range f.joined {
			patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence, Graph: id.MessagesGraph()}, kg.Pattern{Graph: id.RecordGraph()})
		}
	} else {
		patterns = append(patterns, kg.Pattern{Predicate: kg.Sequence}, kg.Pattern{Predicate: vocab.Version})
	}
	return kg.Filter{Patterns: patterns, View: kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true}}
}

// All yields the events and waits for more. It ends with the context's error, and with
// CodeClosed and CodeResync like a kg.Watcher. It may be called once, from one goroutine.
func (f *AgentFeed) All() iter.Seq2[AgentEvent, error] {
	return func(yield func(AgentEvent, error) bool) {
		for seen, err := range f.watcher.Commits() {
			more := true
			switch {
			case err != nil:
				yield(AgentEvent{}, err)
				return
			case len(seen) == 0: // nudged
			default:
				if more, err = f.yieldCommit(seen[0].Commit, yield); err != nil {
					yield(AgentEvent{}, err)
					return
				}
			}
			if more {
				more, err = f.yieldLive(yield)
			}
			if err != nil {
				yield(AgentEvent{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// yieldLive yields the queued signals and presence.
func (f *AgentFeed) yieldLive(yield func(AgentEvent, error) bool) (more bool, err error) {
	list, present, closed := f.listener.drain()
	if closed {
		return false, kg.Errorf(kg.CodeClosed, "server is shutting down")
	}
	for i := range list {
		if f.joined[list[i].Channel] && f.canRead(list[i].Channel) && !yield(AgentEvent{Signal: &list[i]}, nil) {
			return false, nil
		}
	}
	for i := range present {
		if present[i].Agent != f.agent && f.meets(present[i].Agent) && !yield(AgentEvent{Presence: &present[i]}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// canRead reports whether the agent can read the channel.
func (f *AgentFeed) canRead(id channel.ID) bool {
	return f.service.table.Get(id).AsPrincipal(f.by.ReaderPrincipal(f.agent)).CanRead(f.agent)
}

// meets reports whether the other agent is a member of a channel that the agent is a
// member of and can read.
func (f *AgentFeed) meets(other kg.AgentID) bool {
	for id := range f.joined {
		if e := f.service.table.Get(id); e != nil && e.RoleOf(other) != "" && f.canRead(id) {
			return true
		}
	}
	return false
}

// yieldCommit yields the events of a commit and follows the agent's membership. Events are
// numbered before access is checked, so that positions follow from the log alone.
func (f *AgentFeed) yieldCommit(c *kg.Commit, yield func(AgentEvent, error) bool) (more bool, err error) {
	last, n := f.position, uint32(0)
	touched := f.service.digests.read(c)
	was, changed := f.applyMembership(touched)
	if changed {
		// Whoever is told of a joining may rely on the signals and the presence after it.
		f.service.signals.move(f.listener, f.joined)
	}
	for at := range touched {
		id, controls := touched[at].channel, touched[at].controls
		was, is := was[at], f.joined[id]
		hasMessage := (was || is) && touched[at].publishes
		for i := range controls {
			if !was && !is && controls[i].Kind != ChannelCreated {
				continue
			}
			p := f.positionOf(c, n, at == len(touched)-1 && i == len(controls)-1 && !hasMessage)
			n++
			if isBehind(p, last) && f.mayTell(&controls[i], was || is) {
				f.position = p
				if !yield(AgentEvent{Control: &controls[i], Position: p}, nil) {
					return false, nil
				}
			}
		}
		if !hasMessage {
			continue
		}
		p := f.positionOf(c, n, at == len(touched)-1)
		n++
		if !isBehind(p, last) || !f.canRead(id) {
			continue
		}
		m, err := f.messageIn(c, id)
		if err != nil {
			return false, err
		}
		f.position = p
		if !yield(AgentEvent{Message: m, Position: p}, nil) {
			return false, nil
		}
	}
	if changed {
		if err := f.watcher.Refilter(f.watchFilter()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// applyMembership updates the joined channels by a commit's effects. It returns for each of
// them whether the agent was a member before, and whether that changed for any.
func (f *AgentFeed) applyMembership(touched []channelDigest) (was []bool, changed bool) {
	was = make([]bool, len(touched))
	for at := range touched {
		id, controls := touched[at].channel, touched[at].controls
		was[at] = f.joined[id]
		is := was[at]
		for i := range controls {
			switch one := &controls[i]; {
			case one.Kind == ChannelDeleted, one.Kind == MemberLeft && one.Agent == f.agent:
				is = false
			case one.Kind == MemberJoined && one.Agent == f.agent:
				is = true
			}
		}
		if is {
			f.joined[id] = true
		} else {
			delete(f.joined, id)
		}
		changed = changed || was[at] != is
	}
	return was, changed
}

// positionOf returns the position after the event with index n of a commit.
func (f *AgentFeed) positionOf(c *kg.Commit, n uint32, last bool) kg.Position {
	if last {
		n = kg.EndOfCommit
	}
	return kg.Position{Epoch: f.position.Epoch, Revision: c.Revision, Index: n}
}

// isBehind reports whether an event was not told before the position last.
func isBehind(p, last kg.Position) bool {
	return p.Revision != last.Revision || p.Index > last.Index
}

// commitDigests keeps the effects of the last commits on channels, so that the feeds that wake up
// together scan a commit once.
type commitDigests struct {
	mu    sync.Mutex // guards slots, but not their contents
	slots [16]*commitDigest
}

type commitDigest struct {
	revision kg.Revision
	once     sync.Once // initializes list, which is then immutable
	list     []channelDigest
}

// channelDigest is the effect of a commit on a channel.
type channelDigest struct {
	channel   channel.ID
	controls  []Control
	publishes bool
}

// read returns the channels with a record that the commit changed or in which it published,
// sorted by id.
func (d *commitDigests) read(c *kg.Commit) []channelDigest {
	d.mu.Lock()
	p := &d.slots[uint64(c.Revision)%uint64(len(d.slots))]
	if *p == nil || (*p).revision != c.Revision {
		*p = &commitDigest{revision: c.Revision}
	}
	one := *p
	d.mu.Unlock()
	one.once.Do(func() { one.list = digestOf(c) })
	return one.list
}

func digestOf(c *kg.Commit) (list []channelDigest) {
	at := map[channel.ID]int{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, part := channel.OfGraph(ch.Quad.Graph)
		published := part == channel.JournalPart && ch.Op == kg.Add && ch.Quad.Predicate == kg.Sequence
		if !published && (part != channel.RecordPart || ch.Quad.Subject != id.Entity()) {
			continue
		}
		n, found := at[id]
		if !found {
			n, at[id] = len(list), len(list)
			list = append(list, channelDigest{channel: id, controls: controlsInCommit(c, id)})
		}
		list[n].publishes = list[n].publishes || published
	}
	slices.SortFunc(list, func(a, b channelDigest) int { return cmp.Compare(a.channel, b.channel) })
	return list
}

// mayTell reports whether the agent may be told of a change of a channel; member means that
// it was one before or after the commit.
func (f *AgentFeed) mayTell(c *Control, member bool) bool {
	e := f.service.table.Get(c.Channel).AsPrincipal(f.by.ReaderPrincipal(f.agent))
	switch {
	case e == nil:
		return false
	case !member: // the creation of a channel that it can find
		return e.SeenBy(f.by).CanDiscover(f.agent)
	case e.CanRead(f.agent):
		return true
	case c.Agent == f.agent:
		return c.Kind == MemberJoined || c.Kind == MemberLeft
	case c.Kind != ChannelDeleted:
		return false
	case e.BeforeDeletion == nil: // deleted before the start of the server
		return e.Scope == ""
	}
	return e.BeforeDeletion.AsPrincipal(f.by.ReaderPrincipal(f.agent)).CanRead(f.agent)
}

// messageIn returns the message that a commit published in the channel. Live ones are
// decoded once for all feeds and streams; the log may still have content that was removed
// since.
func (f *AgentFeed) messageIn(c *kg.Commit, id channel.ID) (*message.Message, error) {
	j := f.service.journal
	m, err := j.MessageIn(c, id, j.ViewerOf(f.agent))
	if err == nil && (c.Revision <= f.stored || j.MayDiffer(m)) {
		m, err = j.Reread(f.ctx, m, j.ViewerOf(f.agent))
	}
	return m, err
}

// tellPresence passes changes of presence on to the feeds of agents that share a channel
// with the agent, until the context is done.
func (s *Service) tellPresence(ctx context.Context) error {
	changes, err := s.options.Presence(ctx)
	if err != nil {
		return err
	}
	for one := range changes {
		s.signals.broadcastPresence(one, s.table.ChannelsJoinedBy(one.Agent))
	}
	return nil
}
