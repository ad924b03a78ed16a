package channels

import (
	"context"
	"iter"
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

// Feed is many channels as they go on. Close it when done.
type Feed struct {
	service  *Service
	by       Caller
	agent    kg.AgentID
	ctx      context.Context
	channels channelSet
	include  func(*Message) bool // which messages are told
	position kg.Position         // up to where was told
	release  func()
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
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.joinedChannels(by, agent), from, func(*Message) bool { return true })
}

// StreamScope is StreamAll of the channels of a scope that the caller may read, those of
// an intent's tasks included: a task is within its intent.
//
// Errors: those of GetScope too.
func (s *Service) StreamScope(ctx context.Context, by Caller, scope ScopeID, from *kg.Position) (*Feed, error) {
	agent, _, err := s.accessibleScope(by, scope)
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.channelsWithin(by, agent, scope), from, func(*Message) bool { return true })
}

// openFeed makes a feed that goes on, and counts as a stream of the caller's.
func (s *Service) openFeed(ctx context.Context, by Caller, of channelSet, from *kg.Position, keep func(*Message) bool) (*Feed, error) {
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

// newFeed makes a feed that begins behind a position (StreamAll).
func (s *Service) newFeed(ctx context.Context, by Caller, of channelSet, from *kg.Position, keep func(*Message) bool) (*Feed, error) {
	agent, err := by.actingAgent()
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
		return nil, kg.Errorf(kg.CodePositionGone, "the position is of another log, or ahead of this one")
	}
	return f, nil
}

// Messages yields the messages behind the feed's position in order, and waits for
// more. It ends with CodeLimitExceeded for one stream too many, with the context's
// error, and with CodeClosed and CodeResync as a kg.Watcher does. It is used once, from
// one goroutine.
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

// checkAdmission asks whether the caller may follow anything.
func (f *Feed) checkAdmission() error {
	none := kg.Filter{Patterns: []kg.Pattern{{Predicate: kg.Sequence, Graph: ChannelID("none").RecordGraph()}}, View: kg.View{Principal: f.by.readerPrincipal(f.agent), AllGraphs: true}}
	w, err := f.service.store.Watch(f.ctx, none, f.service.store.Head())
	if err == nil {
		w.Close()
	}
	return err
}
