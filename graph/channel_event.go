package graph

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/operation"
	"koine/kg"
)

// channelSource is the source of a Stream of one channel's events.
type channelSource struct {
	ownSource
	events       *channels.Events
	sentPosition atomic.Pointer[kg.Position]
	// current is the event being yielded.
	current channels.Event
}

// Events yields an event for each change and each message.
func (s *channelSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for e, err := range s.events.All() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = e
			if !yield(channelEventOf(e), nil) {
				return
			}
			s.sentPosition.Store(&e.Position)
		}
	}
}

// channelVersion is the property that changes with every change of a channel.
var channelVersion = kg.IRI(kg.OwnVocabulary + "channelVersion")

// channelEventOf represents a change as a change of a statement in the
// channel's record.
func channelEventOf(e channels.Event) operation.Event {
	c := e.Control
	if c == nil {
		return eventOf(e.Message, e.Position)
	}
	q := kg.Quad{Subject: c.Channel.Entity(), Predicate: channelVersion, Object: kg.Integer(c.Version), Graph: c.Channel.RecordGraph()}
	return ownEvent(kg.Replace, q, &kg.Commit{Revision: c.Revision, Time: c.Time, Principal: c.By, Actor: c.By}, e.Position)
}

// Position is the position after the last event that was sent, or the zero
// Position if none is known.
func (s *channelSource) Position() kg.Position { return deref(s.sentPosition.Load()) }

// Close ends the stream.
func (s *channelSource) Close() { s.events.Close() }

// channelEvent is the content of Subscription.channelChanged.
type channelEvent struct {
	field  *executor.Selected
	source *channelSource
}

func (c *channelEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	if m := c.source.current.Message; m != nil {
		return writePublished(w, t, c.field, m, e.Position)
	}
	change := &ChannelChange{c.source.current.Control, t.FormatPosition(e.Position)}
	return w.Object(c.field.On(channelChangeObject), change)
}

// ChannelChange is a change of a channel.
type ChannelChange struct {
	record   *channels.Control
	position Position
}

// Kind is the kind of the change.
func (c *ChannelChange) Kind() ChannelChangeKind { return ChannelChangeKind(inSchema(c.record.Kind)) }

// ChannelID is the id of the channel.
func (c *ChannelChange) ChannelID() string { return string(c.record.Channel) }

// Channel is the channel in its present state.
func (c *ChannelChange) Channel(ctx context.Context) (*Channel, error) {
	return unlessGone(readChannel(ctx, string(c.record.Channel)))
}

// Agent is the agent that the change is about, nil for none.
func (c *ChannelChange) Agent() *Agent { return agentIfAny(c.record.Agent) }

// AgentID is the id of that agent.
func (c *ChannelChange) AgentID() *string { return nilIfEmpty(string(c.record.Agent)) }

// Role is the agent's role after the change, or before it left.
func (c *ChannelChange) Role() *ChannelRole { return enumOrNil[ChannelRole](c.record.Role) }

// Actor is the agent that made the change.
func (c *ChannelChange) Actor() *Agent { return agentOf(c.record.By) }

// ActorID is the id of that agent.
func (c *ChannelChange) ActorID() string { return string(c.record.By) }

// Changes are the settings that changed, sorted by name.
func (c *ChannelChange) Changes() []ChannelSettingChange {
	out := make([]ChannelSettingChange, 0, len(c.record.Changes))
	for _, one := range c.record.Changes {
		out = append(out, ChannelSettingChange{Name: one.Name, Old: one.Old, New: one.New})
	}
	return out
}

// Version is the channel's version after the change, nil if it did not change.
func (c *ChannelChange) Version() *int64 { return someNumber(c.record.Version) }

func someNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Time is when the change was committed.
func (c *ChannelChange) Time() time.Time { return c.record.Time }

// Revision is the revision of the commit.
func (c *ChannelChange) Revision() kg.Revision { return c.record.Revision }

// Position is the position after the change.
func (c *ChannelChange) Position() *Position { return &c.position }

// ChannelChanged establishes Subscription.channelChanged.
func (*subscriptionRoot) ChannelChanged(ctx context.Context, f *executor.Selected, args *subscriptionChannelChangedArgs) (*Stream, error) {
	return subscribeChannels(ctx, f, args.Resume, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		from, told := o.startPosition()
		events, err := o.service.StreamEvents(o.streamCtx, o.by, channel.ID(args.ChannelID), &from)
		s := &channelSource{ownSource: ownSource{o.store}, events: events}
		s.sentPosition.Store(told)
		return &channelEvent{field: o.field, source: s}, s, err
	})
}
