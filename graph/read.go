package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// reading is a root field answered in three steps: see the package comment.
type reading struct {
	*planner
	field graphql.CollectedField
	args  map[string]any
}

// read begins to read the field of the context.
func read(ctx context.Context, view *ViewInput) (reading, error) {
	fc := graphql.GetFieldContext(ctx)
	v, err := runOf(ctx).view(view)
	if err != nil {
		return reading{}, err
	}
	if _, err := runOf(ctx).newCutter(fc.Args); err != nil {
		return reading{}, err
	}
	return reading{newPlanner(ctx, v), fc.Field, fc.Args}, nil
}

// loader opens the snapshot to read.
func (r reading) loader() (*loader, error) {
	s, err := r.run.open(r.ctx, r.view)
	if err != nil {
		return nil, err
	}
	return newLoader(r.ctx, r.run, s, r.view), nil
}

// answer stores the output of write as the field's answer.
func (r reading) answer(write func(b []byte) []byte) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if c := r.run.cutter; c != nil {
		return c.leaveOpen(r.ctx, write)
	}
	// Preallocate the loaded bytes, and as many for the names of fields.
	b := write(make([]byte, 0, min(2*r.run.bytes.Load()+256, maxGuess)))
	if len(b) > r.run.engine.limits.ResultBytes {
		return r.run.engine.limits.resultTooLarge()
	}
	answerOf(r.ctx).json = b
	return nil
}

// readEntity answers Query.entity.
func readEntity(ctx context.Context, iri kg.Term, view *ViewInput) error {
	r, err := read(ctx, view)
	if err != nil {
		return err
	}
	return r.showEntity(iri)
}

// showEntity answers a field of type Entity.
func (r reading) showEntity(iri kg.Term) error {
	plan, err := r.entity(r.field.Selections)
	if err != nil {
		return err
	}
	l, err := r.loader()
	if err != nil {
		return err
	}
	return r.answerEntity(l, plan, iri)
}

func (r reading) answerEntity(l *loader, plan *entityPlan, iri kg.Term) error {
	node, err := l.entity(plan, iri)
	if node == nil || err != nil {
		return err
	}
	return r.answer(node.write)
}

// entity loads one entity, nil if the view shows nothing of it.
func (l *loader) entity(plan *entityPlan, iri kg.Term) (*entityNode, error) {
	ref, err := l.ref(iri)
	if err != nil {
		return nil, err
	}
	nodes, err := l.entities(plan, []entityRef{ref})
	if err != nil {
		return nil, err
	}
	if !nodes[0].found && !nodes[0].hadPast() {
		if there, err := l.shows(ref); err != nil || !there {
			return nil, err
		}
	}
	return nodes[0], nil
}

// shows reports whether the view shows a statement with the entity.
func (l *loader) shows(ref entityRef) (bool, error) {
	if ref.id == (kg.ID{}) {
		return false, nil
	}
	there, err := holdsAny(l.snapshot, kg.IDPattern{Subject: ref.id})
	if err == nil && !there {
		there, err = holdsAny(l.snapshot, kg.IDPattern{Object: ref.id})
	}
	return there, err
}

// readEntities answers Query.entities.
func readEntities(ctx context.Context, view *ViewInput) error {
	return readPage(ctx, view, (*planner).entityConnection, (*loader).entityPage)
}

// readStatements answers Query.statements.
func readStatements(ctx context.Context, view *ViewInput) error {
	return readPage(ctx, view, (*planner).statementConnection, (*loader).statementPage)
}

func readPage(
	ctx context.Context, view *ViewInput,
	plan func(*planner, graphql.CollectedField, map[string]any) (*connection, error),
	load func(*loader, *connection) (*page, error),
) error {
	r, err := read(ctx, view)
	if err != nil {
		return err
	}
	c, err := plan(r.planner, r.field, r.args)
	if err != nil {
		return err
	}
	l, err := r.pageLoader(c)
	if err != nil {
		return err
	}
	page, err := load(l, c)
	if err != nil {
		return err
	}
	return r.answer(page.write)
}

// pageLoader opens the snapshot of a page. A page with a cursor later opens
// the snapshot of the walk's first page itself. Opening the newest one as well
// would make the answer's revision look newer.
func (r reading) pageLoader(c *connection) (*loader, error) {
	if c.after != nil {
		return newLoader(r.ctx, r.run, nil, r.view), nil
	}
	return r.loader()
}

// openView opens the snapshot of a view argument.
func openView(ctx context.Context, view *ViewInput) (*kg.Snapshot, error) {
	v, err := runOf(ctx).view(view)
	if err != nil {
		return nil, err
	}
	return runOf(ctx).open(ctx, v)
}
