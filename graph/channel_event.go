package graph

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"koine/channels"
	"koine/internal/operation"
	"koine/kg"
)

// channelSource is what becomes of a channel as the source of a Stream.
type channelSource struct {
	ownSource
	events *channels.Events
	told   atomic.Pointer[kg.Position]
	// current is the event that is being yielded.
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
			s.told.Store(&e.Position)
		}
	}
}

// channelVersion is the property that changes with a channel.
var channelVersion = kg.IRI(kg.OwnVocabulary + "channelVersion")

// channelEventOf tells of a change by a statement of the channel's record.
func channelEventOf(e channels.Event) operation.Event {
	c := e.Control
	if c == nil {
		return eventOf(e.Message, e.Position)
	}
	q := kg.Quad{Subject: c.Channel.Entity(), Predicate: channelVersion, Object: kg.Integer(c.Version), Graph: c.Channel.RecordGraph()}
	return ownEvent(kg.Replace, q, &kg.Commit{Revision: c.Revision, Time: c.Time, Principal: c.By, Actor: c.By}, e.Position)
}

// Position is behind the last event that is out, the zero Position while there is no
// saying.
func (s *channelSource) Position() kg.Position { return deref(s.told.Load()) }

// Close ends the stream of the channel.
func (s *channelSource) Close() { s.events.Close() }

// channelEvent is the content of Subscription.channelChanged.
type channelEvent struct {
	plan   *insidePlan
	source *channelSource
}

func (c *channelEvent) write(t *telling, e *operation.Event) ([]byte, error) {
	if m := c.source.current.Message; m != nil {
		return t.message(c.plan, m, e.Position)
	}
	change := &ChannelChange{c.source.current.Control, Position(t.stream.engine.deps.Store.FormatPosition(e.Position))}
	return newLoader(t.ctx, t.run, nil, t.stream.view).inside(c.plan, func(ctx context.Context, ec *executionContext) graphql.Marshaler {
		return ec._ChannelChange(ctx, c.plan.set, change)
	})
}

// ChannelChange is a change of a channel.
type ChannelChange struct {
	of *channels.Control
	at Position
}

// IsChannelEvent says that it is one.
func (*ChannelChange) IsChannelEvent() {}

// Kind is what has become of the channel.
func (c *ChannelChange) Kind() ChannelChangeKind { return ChannelChangeKind(inSchema(c.of.Kind)) }

// ChannelID is that of the channel.
func (c *ChannelChange) ChannelID() string { return string(c.of.Channel) }

// Channel is the channel as it is now.
func (c *ChannelChange) Channel(ctx context.Context) (*Channel, error) {
	return unlessGone(readChannel(ctx, string(c.of.Channel)))
}

// Agent is whom it is about, nil for nobody.
func (c *ChannelChange) Agent() *string { return some(string(c.of.Agent)) }

// Role is what that one is, or was.
func (c *ChannelChange) Role() *ChannelRole { return enumOrNil[ChannelRole](c.of.Role) }

// By is who made the change.
func (c *ChannelChange) By() string { return string(c.of.By) }

// Version is that of the channel, nil where it stays.
func (c *ChannelChange) Version() *int64 { return someNumber(c.of.Version) }

func someNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Time is when it was.
func (c *ChannelChange) Time() time.Time { return c.of.Time }

// Revision is the commit that it came with.
func (c *ChannelChange) Revision() kg.Revision { return c.of.Revision }

// Position is behind it.
func (c *ChannelChange) Position() *Position { return &c.at }

// followChannel establishes Subscription.channelChanged.
func followChannel(ctx context.Context, id string, resume *Position) error {
	return subscribeChannels(ctx, resume, func(o *opening) (eventContent, source, error) {
		from, told := o.position()
		events, err := o.service.StreamEvents(o.life, o.by, channels.ChannelID(id), &from)
		s := &channelSource{ownSource: ownSource{o.store}, events: events}
		s.told.Store(told)
		return &channelEvent{plan: o.plan, source: s}, s, err
	})
}
