package graph

import (
	"context"
	"iter"
	"sync/atomic"

	"koine/channels/scope"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/intents"
	"koine/internal/operation"
	"koine/kg"
)

// intentSource is the source of a Stream of the events of intents.
type intentSource struct {
	ownSource
	feed         *intents.Feed
	sentPosition atomic.Pointer[kg.Position]
	// current is the event being yielded.
	current intents.FeedEvent
}

// Events yields the events and messages of the feed. Messages without content are left out.
func (s *intentSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for e, err := range s.feed.All() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = e
			if !yield(intentEventOf(&e), nil) {
				return
			}
			s.sentPosition.Store(&e.Position)
		}
	}
}

// intentEventOf represents an event of the feed as the change of a statement.
func intentEventOf(e *intents.FeedEvent) operation.Event {
	if e.Message != nil {
		return eventOf(e.Message, e.Position)
	}
	q := kg.Quad{Subject: e.Intent.Entity(), Predicate: kg.Sequence, Object: kg.Integer(e.Event.Sequence), Graph: e.Intent.EventsGraph()}
	return ownEvent(kg.Add, q, &kg.Commit{Revision: e.Position.Revision, Time: e.Event.Time, Principal: e.Event.Actor, Actor: e.Event.Actor}, e.Position)
}

// Position is the position after the last event that was sent, or the zero Position if none
// is known.
func (s *intentSource) Position() kg.Position { return deref(s.sentPosition.Load()) }

// Close ends the stream.
func (s *intentSource) Close() { s.feed.Close() }

// intentEvent is the content of Subscription.intentChanged.
type intentEvent struct {
	field  *executor.Selected
	source *intentSource
}

func (c *intentEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	if m := c.source.current.Message; m != nil {
		return writePublished(w, t, c.field, m, e.Position)
	}
	change := &IntentChange{&c.source.current, t.FormatPosition(e.Position)}
	return w.Object(c.field.On(intentChangeObject), change)
}

// IntentChange is an event of an intent.
type IntentChange struct {
	record   *intents.FeedEvent
	position Position
}

// IntentID is the id of the intent.
func (c *IntentChange) IntentID() string { return string(c.record.Intent) }

// Intent is the intent in its present state.
func (c *IntentChange) Intent(ctx context.Context) (*Intent, error) {
	return intentIfAny(ctx, c.record.Intent)
}

// Event is the entry of the log.
func (c *IntentChange) Event() *ScopeEvent { return &ScopeEvent{c.record.Event} }

// Before is nil unless state or status changed.
func (c *IntentChange) Before() *IntentDifference {
	if c.record.Change == nil {
		return nil
	}
	return &IntentDifference{State: c.record.Change.OldState, Status: enumOrNil[IntentStatus](c.record.Change.OldStatus)}
}

// After is nil unless state or status changed.
func (c *IntentChange) After() *IntentDifference {
	if c.record.Change == nil {
		return nil
	}
	return &IntentDifference{State: c.record.Change.NewState, Status: enumOrNil[IntentStatus](c.record.Change.NewStatus)}
}

// Position is the position after the event.
func (c *IntentChange) Position() *Position { return &c.position }

// IntentChanged establishes Subscription.intentChanged.
func (*subscriptionRoot) IntentChanged(ctx context.Context, f *executor.Selected, args *subscriptionIntentChangedArgs) (*Stream, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	q := intents.FeedQuery{Intent: scope.ID(deref(args.IntentID)), Portfolio: deref(args.PortfolioID)}
	if args.IntentID == nil && args.PortfolioID == nil {
		if q.Agent, err = by.ActingAgent(); err != nil {
			return nil, err
		}
	}
	return subscribeOwn(ctx, f, args.Resume, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		from, told := o.startPosition()
		if told == nil { // the beginning of the log
			from = kg.Position{Epoch: o.store.Head().Epoch, Index: kg.EndOfCommit}
		}
		q.After = &from
		feed, err := service.Follow(o.streamCtx, by, q)
		if err != nil {
			return nil, nil, withFieldNames(err, map[string]string{"scopeId": "intentId"})
		}
		s := &intentSource{ownSource: ownSource{o.store}, feed: feed}
		s.sentPosition.Store(told)
		return &intentEvent{field: o.field, source: s}, s, nil
	})
}
