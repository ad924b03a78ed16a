package graph

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"koine/channels"
	"koine/internal/operation"
	"koine/kg"
)

// messageSource is the messages of a channel as the source of a Stream.
type messageSource struct {
	stream *channels.Stream
	store  *kg.Store
	// told is the position behind the last message that is out.
	told atomic.Pointer[kg.Position]
	// current is the message of the event that is being yielded.
	current *channels.Message
}

// Events yields an event for each message.
func (s *messageSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for m, err := range s.stream.Messages() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = m
			e := eventOf(s.store, m)
			if !yield(e, nil) {
				return
			}
			s.told.Store(&e.Position)
		}
	}
}

// eventOf tells of a message by the statement that numbers it.
func eventOf(store *kg.Store, m *channels.Message) operation.Event {
	at := endOf(store, m.Revision)
	numbered := kg.Statement{
		Quad:       kg.Quad{Subject: m.ID.Entity(), Predicate: kg.Sequence, Object: kg.Integer(m.Sequence), Graph: m.Channel.MessagesGraph()},
		Assertions: []kg.Assertion{{Source: m.Author, Time: m.Time, Revision: m.Revision}},
	}
	commit := &kg.Commit{Revision: m.Revision, Time: m.Time, Principal: m.Author, Actor: m.Author, MessageID: string(m.ID)}
	return operation.Event{Changes: []kg.Event{{Op: kg.Add, Statement: numbered, Commit: commit, Position: at}}, Position: at}
}

// Position is behind the last message that is out, the zero Position while there is
// no saying.
func (s *messageSource) Position() kg.Position {
	if p := s.told.Load(); p != nil {
		return *p
	}
	return kg.Position{}
}

// Snapshot is nil: messages are not told as a snapshot.
func (s *messageSource) Snapshot() *kg.Snapshot { return nil }

// View takes a snapshot of the store.
func (s *messageSource) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	return s.store.View(ctx, v)
}

// Close ends the stream of the channel.
func (s *messageSource) Close() { s.stream.Close() }

// messageEvent is the content of Subscription.messagePublished.
type messageEvent struct {
	plan   *insidePlan
	source *messageSource
}

func (c *messageEvent) write(t *telling, e *operation.Event) ([]byte, error) {
	m := c.source.current
	position := Position(t.stream.engine.deps.Store.FormatPosition(e.Position))
	event := &MessagePublished{Message: &Message{of: m}, Sequence: m.Sequence, Position: &position}
	return newLoader(t.ctx, t.run, nil).inside(c.plan, func(ctx context.Context, ec *executionContext) graphql.Marshaler {
		return ec._MessagePublished(ctx, c.plan.set, event)
	})
}

// followMessages establishes Subscription.messagePublished.
func followMessages(ctx context.Context, channelID string, since *int64, resume *Position) error {
	f, _ := ctx.Value(followingKey{}).(*following)
	f.subscription, f.err = newMessageStream(ctx, f.ctx, channels.ChannelID(channelID), since, resume)
	return f.err
}

func newMessageStream(ctx, life context.Context, id channels.ChannelID, since *int64, resume *Position) (*Stream, error) {
	r, field := runOf(ctx), graphql.GetFieldContext(ctx).Field
	service, by, err := r.channels()
	if err != nil {
		return nil, err
	}
	v, err := r.view(nil)
	if err != nil {
		return nil, err
	}
	if since != nil && resume != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "a start is said once").At("resume")
	}
	p := newPlanner(ctx, v)
	content := &messageEvent{plan: p.inside(field), source: &messageSource{store: r.engine.deps.Store}}
	plan, err := p.event(field, content)
	if err != nil {
		return nil, err
	}
	s := &Stream{source: content.source, ctx: life, engine: r.engine, request: r.request, plan: plan, view: v}
	if err := s.followable(); err != nil {
		return nil, err
	}
	start, err := r.start(resume)
	if err != nil {
		return nil, err
	}
	if start.Start != operation.Unsaid {
		since, err = content.source.since(ctx, service, by, id, start)
	} else if since == nil {
		head := r.engine.deps.Store.Head()
		content.source.told.Store(&head)
	}
	if err != nil {
		return nil, err
	}
	if content.source.stream, err = service.Stream(life, by, id, since); err != nil {
		return nil, err
	}
	return s, nil
}

// since is the sequence behind which a start lies, nil for what comes from now on.
func (s *messageSource) since(ctx context.Context, service *channels.Service, by channels.Caller, id channels.ChannelID, start operation.Resume) (*int64, error) {
	var number int64
	switch start.Start {
	case operation.Latest:
		head := s.store.Head()
		s.told.Store(&head)
		return nil, nil
	case operation.After:
		// The messages are read, not the log: it may begin later.
		if start.After.Epoch != s.store.Epoch() || start.After.Compare(s.store.Head()) > 0 {
			if err := s.store.CheckPosition(start.After); err != nil {
				return nil, err
			}
		}
		told := start.After.Revision
		if start.After.Index != kg.EndOfCommit && told > 0 {
			told-- // of that commit not all was told
		}
		var err error
		if number, err = service.NumberAt(ctx, by, id, told); err != nil {
			return nil, err
		}
		s.told.Store(&start.After)
	}
	return &number, nil
}
