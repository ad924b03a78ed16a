package channels

import (
	"context"
	"iter"
	"sync"

	"koine/channels/channel"
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
// Errors: also those of GetScope.
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
