package graph

import (
	"context"
	"encoding/json"
	"iter"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/operation"
	"koine/kg"
)

// subscriptionSetup is a subscription to domain events while it is being established.
type subscriptionSetup struct {
	streamCtx context.Context // ends with the stream
	store     *kg.Store
	start     operation.Resume
	field     *executor.Selected
	// Set for events of package channels only.
	service *channels.Service
	by      channels.Caller
}

// ownSource is the part that all sources of domain events share.
type ownSource struct{ store *kg.Store }

// Snapshot is nil: these subscriptions do not begin with a snapshot of
// statements.
func (ownSource) Snapshot() *kg.Snapshot { return nil }

// View takes a snapshot of the store.
func (s ownSource) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	return s.store.View(ctx, v)
}

// ownEvent represents a domain event as the change of one statement in a
// system graph. c is the commit as the subscriber may see it.
func ownEvent(op kg.Op, q kg.Quad, c *kg.Commit, at kg.Position) operation.Event {
	changed := kg.Statement{Quad: q, Assertions: []kg.Assertion{{Source: c.Actor, Time: c.Time, Revision: c.Revision}}}
	return operation.Event{Changes: []kg.Event{{Op: op, Statement: changed, Commit: c, Position: at}}, Position: at}
}

// subscribeChannels establishes a subscription to events of package channels.
func subscribeChannels(ctx context.Context, f *executor.Selected, resume *Position, open func(*subscriptionSetup) (knowledge.EventContent, knowledge.Source, error)) (*Stream, error) {
	return subscribeOwn(ctx, f, resume, func(o *subscriptionSetup) (c knowledge.EventContent, s knowledge.Source, err error) {
		if o.service, o.by, err = runOf(ctx).channelService(); err != nil {
			return nil, nil, err
		}
		return open(o)
	})
}

// subscribeOwn establishes a subscription to events of a domain package.
// Opening the domain's stream must be the last step that can fail: nothing
// else would close the stream.
func subscribeOwn(ctx context.Context, f *executor.Selected, resume *Position, open func(*subscriptionSetup) (knowledge.EventContent, knowledge.Source, error)) (*Stream, error) {
	return runOf(ctx).OpenStream(ctx, f, resume, func(life context.Context, start operation.Resume) (knowledge.EventContent, knowledge.Source, error) {
		return open(&subscriptionSetup{streamCtx: life, store: runOf(ctx).engine.deps.Store, start: start, field: f})
	})
}

// startPosition returns the position to start after, zero for the beginning, and
// the position up to which there is nothing to send, nil for the beginning.
func (o *subscriptionSetup) startPosition() (from kg.Position, told *kg.Position) {
	switch o.start.Start {
	case operation.Earliest, operation.Snapshot:
		return kg.Position{}, nil
	case operation.After:
		return o.start.After, &o.start.After
	}
	head := o.store.Head()
	return head, &head
}

// SendSignal answers Mutation.sendSignal.
func (*mutationRoot) SendSignal(ctx context.Context, input SendSignalInput) (*SendSignalPayload, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	if err := service.Signal(ctx, by, channel.ID(input.ChannelID), channels.SignalKind(input.Kind), input.Data); err != nil {
		return nil, inInput(err)
	}
	return &SendSignalPayload{Sent: true}, nil
}

// signalSource is the source of a Stream of a channel's signals. Signals have
// no positions of their own. Their events have the log's head at the time.
type signalSource struct {
	ownSource
	signals       iter.Seq2[channels.Signal, error]
	cancel        context.CancelFunc
	startPosition kg.Position
	// current is the signal of the event being yielded.
	current channels.Signal
}

// Events yields an event for each signal.
func (s *signalSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for one, err := range s.signals {
			s.current = one
			if !yield(operation.Event{Taken: one.Time, Position: s.store.Head()}, err) || err != nil {
				return
			}
		}
	}
}

// Position is the position at which the stream began.
func (s *signalSource) Position() kg.Position { return s.startPosition }

// Close ends the stream.
func (s *signalSource) Close() { s.cancel() }

// signalEvent is the content of Subscription.signalSent.
type signalEvent struct {
	field  *executor.Selected
	source *signalSource
}

func (c *signalEvent) Write(w *writer, _ *knowledge.EventWriter, _ *operation.Event) error {
	one := c.source.current
	signal := &ChannelSignal{
		ChannelID: string(one.Channel), Sender: agentOf(one.From), SenderID: string(one.From), Kind: string(one.Kind), Data: json.RawMessage(one.Data), Time: one.Time, Dropped: one.Dropped,
	}
	return w.Object(c.field.On(channelSignalObject), signal)
}

// SignalSent establishes Subscription.signalSent.
func (*subscriptionRoot) SignalSent(ctx context.Context, f *executor.Selected, args *subscriptionSignalSentArgs) (*Stream, error) {
	return subscribeChannels(ctx, f, nil, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		s := &signalSource{ownSource: ownSource{o.store}, startPosition: o.store.Head()}
		life, end := context.WithCancel(o.streamCtx)
		signals, err := o.service.Signals(life, o.by, channel.ID(args.ChannelID))
		if err != nil {
			end()
			return nil, nil, err
		}
		s.signals, s.cancel = signals, end
		return &signalEvent{field: o.field, source: s}, s, nil
	})
}
