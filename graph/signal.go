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
