package channels

import (
	"context"
	"iter"
	"slices"
	"sync"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// Delivery is a message of a feed. A feed orders messages as the log does; the messages
// of one commit are ordered by channel id.
type Delivery struct {
	*message.Message
	// Position is the position after the message. Resuming there neither misses nor
	// repeats a message.
	Position kg.Position
}

// Feed streams the messages of many channels. Call Close when done.
type Feed struct {
	service  *Service
	by       Caller
	agent    kg.AgentID
	ctx      context.Context
	channels channelSet
	include  func(*message.Message) bool // filters the messages
	position kg.Position                 // after the last yielded message
	release  func()
}

// Close stops the feed.
func (f *Feed) Close() {
	if f.release != nil {
		f.release()
	}
}

// StreamAll follows all channels that the caller is a member of, including those that
// it joins later. It starts after the position from; nil means now, and the zero
// Position means the beginning.
//
// Errors: CodePositionGone for a position of another log; CodeLimitExceeded for too
// many open streams; those of kg.Store.Watch.
func (s *Service) StreamAll(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.joinedChannels(by, agent), from, func(*message.Message) bool { return true })
}

// StreamScope is like StreamAll for the channels of a scope that the caller can read.
// The channels of an intent include those of its tasks.
//
// Errors: also those of Scopes.Get.
func (s *Service) StreamScope(ctx context.Context, by Caller, scope scope.ID, from *kg.Position) (*Feed, error) {
	agent, _, err := s.table.RequireScope(by, scope)
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.channelsWithin(by, agent, scope), from, func(*message.Message) bool { return true })
}

// openFeed returns a feed that counts as one of the caller's open streams.
func (s *Service) openFeed(ctx context.Context, by Caller, of channelSet, from *kg.Position, keep func(*message.Message) bool) (*Feed, error) {
	f, err := s.newFeed(ctx, by, of, from, keep)
	if err != nil {
		return nil, err
	}
	if err := f.checkAdmission(); err != nil {
		return nil, err
	}
	release, err := s.openStream(by, "")
	if err != nil {
		return nil, err
	}
	f.release = sync.OnceFunc(release)
	return f, nil
}

// newFeed returns a feed that starts after the position from (see StreamAll).
func (s *Service) newFeed(ctx context.Context, by Caller, of channelSet, from *kg.Position, keep func(*message.Message) bool) (*Feed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	head := s.store.Head()
	f := &Feed{service: s, by: by, agent: agent, ctx: ctx, channels: of, include: keep, position: head}
	if from == nil {
		return f, nil
	}
	if f.position = *from; *from == (kg.Position{}) {
		f.position = kg.Position{Epoch: head.Epoch, Index: kg.EndOfCommit}
	}
	if f.position.Epoch != head.Epoch || f.position.Compare(head) > 0 {
		return nil, kg.Errorf(kg.CodePositionGone, "position belongs to another log or is ahead of this one")
	}
	return f, nil
}

// Messages yields the messages after the feed's position in order, and waits for more.
// It ends with CodeLimitExceeded for too many open streams, with the context's error,
// and with CodeClosed and CodeResync like a kg.Watcher. It may be called once, from one
// goroutine.
func (f *Feed) Messages() iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		stopped := false
		tell := func(d Delivery) bool {
			stopped = !yield(d, nil)
			return !stopped
		}
		var err error
		for more := true; more && err == nil && !stopped; {
			more, err = f.replayStored(maxLookedAt, tell)
		}
		if err == nil && !stopped {
			err = f.streamLive(tell)
		}
		if err != nil && !stopped {
			yield(Delivery{}, err)
		}
	}
}

// checkAdmission returns an error if the caller may not watch the store at all.
func (f *Feed) checkAdmission() error {
	none := kg.Filter{Patterns: []kg.Pattern{{Predicate: kg.Sequence, Graph: channel.ID("none").RecordGraph()}}, View: kg.View{Principal: f.by.ReaderPrincipal(f.agent), AllGraphs: true}}
	w, err := f.service.store.Watch(f.ctx, none, f.service.store.Head())
	if err == nil {
		w.Close()
	}
	return err
}

// channelSet is the set of channels of a feed. It changes over time.
type channelSet struct {
	list func() []channel.ID // in any order
	has  func(e *access.Entry) bool
	// patterns match at least one change of every commit that adds a channel to the
	// set, or ends it.
	patterns []kg.Pattern
	// ended returns an error if the agent lost access to the whole set; nil for sets that
	// do not end.
	ended func() error
	// open means that any channel may enter the set by a change elsewhere, such as one of
	// access to a scope: the feed looks at every message.
	open bool
}

// joinedChannels is the set of channels that the agent is a member of.
func (s *Service) joinedChannels(by Caller, agent kg.AgentID) channelSet {
	reader := by.ReaderPrincipal(agent)
	of := channelSet{
		list: func() []channel.ID { return s.table.ChannelsJoinedBy(agent) },
		has:  func(e *access.Entry) bool { return e.AsPrincipal(reader).CanRead(agent) && e.RoleOf(agent) != "" },
	}
	of.patterns = channel.MemberPatterns(agent)
	return of
}

// inboxSet is the set of channels that the agent is a member of, and of the other
// readable channels with messages addressed to it: channels of its scopes and public
// ones.
func (s *Service) inboxSet(by Caller, agent kg.AgentID) channelSet {
	of, reader := s.joinedChannels(by, agent), by.ReaderPrincipal(agent)
	of.list = func() []channel.ID { return s.table.InboxChannels(agent) }
	of.has = func(e *access.Entry) bool { return e.AsPrincipal(reader).CanRead(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: vocab.LaneReader, Object: kg.IRI(string(agent))})
	return of
}

// channelsWithin is the set of readable channels of a scope. The channels of an intent
// include those of its tasks.
func (s *Service) channelsWithin(by Caller, agent kg.AgentID, id scope.ID) channelSet {
	reader := by.ReaderPrincipal(agent)
	patterns := []kg.Pattern{{Predicate: vocab.Scope}, {Graph: id.RecordGraph()}} // of any scope, because tasks may be added
	if sc := s.table.Scope(id); sc != nil && sc.Parent != "" {
		patterns = append(patterns, kg.Pattern{Graph: sc.Parent.RecordGraph()})
	}
	return channelSet{
		list: func() []channel.ID { return s.table.ChannelsWithin(id) },
		has: func(e *access.Entry) bool {
			return e.AsPrincipal(reader).CanRead(agent) && e.IsWithin(id)
		},
		patterns: patterns,
		ended: func() error {
			_, _, err := s.table.RequireScope(by, id)
			return err
		},
	}
}

// StreamInbox is like StreamAll for the messages that are for the caller: those by
// other authors that are addressed to it, to a role that it had then, or to everyone.
// Messages addressed to it or to such a role come from all channels that it can read,
// even if it is not a member.
func (s *Service) StreamInbox(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.inboxSet(by, agent), from, s.inboxFilter(agent))
}

// StreamAudience is like StreamInbox with the messages to everyone in all channels that the
// caller takes part in: those that it is a member of, and those of a scope with the policy
// channel.ByScope. It is a function because most protocols leave out what is for everyone
// in a scope.
func StreamAudience(ctx context.Context, s *Service, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	reader := by.ReaderPrincipal(agent)
	takesPart := func(e *access.Entry) bool { return e.AsPrincipal(reader).IsAddressable(agent) }
	of := channelSet{
		open: true,
		list: func() []channel.ID {
			list := append(s.table.InboxChannels(agent), s.table.ChannelsByScope()...)
			slices.Sort(list)
			return slices.Compact(list)
		},
		has: func(e *access.Entry) bool {
			return takesPart(e) || e.AsPrincipal(reader).CanRead(agent) && s.table.HasPartition(agent, e.ID)
		},
	}
	return s.openFeed(ctx, by, of, from, func(m *message.Message) bool {
		return m.IsFor(agent) && (len(m.Recipients) > 0 || takesPart(s.table.Get(m.Channel)))
	})
}

// InboxQuery selects a page of an inbox.
type InboxQuery struct {
	After kg.Position // the zero Position means the beginning
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0. A page ends earlier if its
	// content might exceed MaxPageBytes.
	PageSize int
}

// Inbox returns the messages that are for the caller (StreamInbox), one page at a time.
// next is the position at which the next page or a stream continues. more reports that
// there may be further messages now. A page may be short or even empty while more is
// set.
//
// Errors: CodePositionGone for a position of another log.
func (s *Service) Inbox(ctx context.Context, by Caller, q InboxQuery) (page []Delivery, next kg.Position, more bool, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, next, false, err
	}
	f, err := s.newFeed(ctx, by, s.inboxSet(by, agent), &q.After, s.inboxFilter(agent))
	if err != nil {
		return nil, next, false, err
	}
	size, bytes := pageSize(q.PageSize), 0
	more, err = f.replayStored(maxLookedAt, func(d Delivery) bool {
		page = append(page, d)
		bytes += d.Size()
		return len(page) < size && bytes <= message.MaxPageBytes-channel.MaxMessageBytes // the next message may have any size
	})
	return page, f.position, more, err
}

// inboxFilter accepts messages that are for the agent. In channels without membership
// these are only the messages that are addressed to it.
func (s *Service) inboxFilter(agent kg.AgentID) func(*message.Message) bool {
	return func(m *message.Message) bool {
		return m.IsFor(agent) && (len(m.Recipients) > 0 || s.table.Get(m.Channel).RoleOf(agent) != "")
	}
}
