package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"koine/channels"
	"koine/internal/operation"
	"koine/kg"
)

// opening is a subscription to something of koine's own while it is established.
type opening struct {
	life  context.Context // that of the stream
	store *kg.Store
	start operation.Resume
	plan  *insidePlan // of what is selected of an event
	// Of one to something of channels.
	service *channels.Service
	by      channels.Caller
}

// ownSource is what the sources of such subscriptions have in common.
type ownSource struct{ store *kg.Store }

// Snapshot is nil: nothing of these is told as a snapshot of statements.
func (ownSource) Snapshot() *kg.Snapshot { return nil }

// View takes a snapshot of the store.
func (s ownSource) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	return s.store.View(ctx, v)
}

// ownEvent tells of what happened by a change of one statement of koine's own, which the
// commit, as it is to be seen, asserts.
func ownEvent(op kg.Op, q kg.Quad, c *kg.Commit, at kg.Position) operation.Event {
	changed := kg.Statement{Quad: q, Assertions: []kg.Assertion{{Source: c.Actor, Time: c.Time, Revision: c.Revision}}}
	return operation.Event{Changes: []kg.Event{{Op: op, Statement: changed, Commit: c, Position: at}}, Position: at}
}

// subscribeChannels establishes a subscription whose events the package channels tells.
func subscribeChannels(ctx context.Context, resume *Position, open func(*opening) (eventContent, source, error)) error {
	return subscribeOwn(ctx, resume, func(o *opening) (c eventContent, s source, err error) {
		if o.service, o.by, err = runOf(ctx).channels(); err != nil {
			return nil, nil, err
		}
		return open(o)
	})
}

// subscribeOwn establishes a subscription whose events a domain package tells.
// What open asks it for is the last that can fail: nobody else would close it.
func subscribeOwn(ctx context.Context, resume *Position, open func(*opening) (eventContent, source, error)) error {
	f, _ := ctx.Value(followingKey{}).(*following)
	f.subscription, f.err = newOwnStream(ctx, f.ctx, resume, open)
	return f.err
}

func newOwnStream(ctx, life context.Context, resume *Position, open func(*opening) (eventContent, source, error)) (*Stream, error) {
	r, field := runOf(ctx), graphql.GetFieldContext(ctx).Field
	v, err := r.view(nil)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: life, engine: r.engine, request: r.request, view: v}
	if err := s.followable(); err != nil {
		return nil, err
	}
	start, err := r.start(resume)
	if err != nil {
		return nil, err
	}
	p := newPlanner(ctx, v)
	if s.plan, err = p.event(field, nil); err != nil {
		return nil, err
	}
	o := &opening{life: life, store: r.engine.deps.Store, start: start, plan: p.inside(field)}
	if s.plan.content, s.source, err = open(o); err != nil {
		return nil, err
	}
	return s, nil
}

// position is behind what a subscription starts: the zero Position from the
// beginning. told is up to where there is nothing to tell, nil from the beginning.
func (o *opening) position() (from kg.Position, told *kg.Position) {
	switch o.start.Start {
	case operation.Earliest, operation.Snapshot:
		return kg.Position{}, nil
	case operation.After:
		return o.start.After, &o.start.After
	}
	head := o.store.Head()
	return head, &head
}
