package graph

import (
	"context"

	"koine/channels"
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
