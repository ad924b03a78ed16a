package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"koine/internal/query"
	"koine/kg"
)

// reading is a root field answered in three steps: see the package comment.
type reading struct {
	*planner
	field graphql.CollectedField
	args  map[string]any
}

// beginReading begins to read the field of the context.
func beginReading(ctx context.Context, view *ViewInput) (reading, error) {
	fc := graphql.GetFieldContext(ctx)
	v, err := runOf(ctx).fieldView(view)
	if err != nil {
		return reading{}, err
	}
	if _, err := runOf(ctx).newCutter(fc.Args); err != nil {
		return reading{}, err
	}
	return reading{newPlanner(ctx, v), fc.Field, fc.Args}, nil
}

// openLoader opens the snapshot to read.
func (r reading) openLoader() (*loader, error) {
	s, err := r.run.openSnapshot(r.ctx, r.view)
	if err != nil {
		return nil, err
	}
	return newLoader(r.ctx, r.run, s, r.view), nil
}

// storeAnswer stores the output of write as the field's answer.
func (r reading) storeAnswer(write func(b []byte) []byte) error {
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
	r, err := beginReading(ctx, view)
	if err != nil {
		return err
	}
	return r.showEntity(iri)
}

// showEntity answers a field of type Entity.
func (r reading) showEntity(iri kg.Term) error {
	plan, err := r.planEntity(r.field.Selections)
	if err != nil {
		return err
	}
	l, err := r.openLoader()
	if err != nil {
		return err
	}
	return r.answerEntity(l, plan, iri)
}

func (r reading) answerEntity(l *loader, plan *entityPlan, iri kg.Term) error {
	node, err := l.loadEntity(plan, iri)
	if node == nil || err != nil {
		return err
	}
	return r.storeAnswer(node.write)
}

// loadEntity loads one entity, nil if the view shows nothing of it.
func (l *loader) loadEntity(plan *entityPlan, iri kg.Term) (*entityNode, error) {
	ref, err := l.newEntityRef(iri)
	if err != nil {
		return nil, err
	}
	nodes, err := l.loadEntities(plan, []entityRef{ref})
	if err != nil {
		return nil, err
	}
	if !nodes[0].found && !nodes[0].hadPast() {
		if there, err := l.showsEntity(ref); err != nil || !there {
			return nil, err
		}
	}
	return nodes[0], nil
}

// showsEntity reports whether the view shows a statement with the entity.
func (l *loader) showsEntity(ref entityRef) (bool, error) {
	if ref.id == (kg.ID{}) {
		return false, nil
	}
	there, err := query.Shows(l.snapshot, kg.IDPattern{Subject: ref.id})
	if err == nil && !there {
		there, err = query.Shows(l.snapshot, kg.IDPattern{Object: ref.id})
	}
	return there, err
}

// readEntities answers Query.entities.
func readEntities(ctx context.Context, view *ViewInput) error {
	return readPage(ctx, view, (*planner).planEntityConnection, (*loader).entityPage)
}

// readStatements answers Query.statements.
func readStatements(ctx context.Context, view *ViewInput) error {
	return readPage(ctx, view, (*planner).planStatementConnection, (*loader).statementPage)
}

func readPage(
	ctx context.Context, view *ViewInput,
	plan func(*planner, graphql.CollectedField, map[string]any) (*connection, error),
	load func(*loader, *connection) (*page, error),
) error {
	r, err := beginReading(ctx, view)
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
	return r.storeAnswer(page.write)
}

// pageLoader opens the snapshot of a page. A page with a cursor later opens
// the snapshot of the walk's first page itself. Opening the newest one as well
// would make the answer's revision look newer.
func (r reading) pageLoader(c *connection) (*loader, error) {
	if c.after != nil {
		return newLoader(r.ctx, r.run, nil, r.view), nil
	}
	return r.openLoader()
}

// openView opens the snapshot of a view argument.
func openView(ctx context.Context, view *ViewInput) (*kg.Snapshot, error) {
	v, err := runOf(ctx).fieldView(view)
	if err != nil {
		return nil, err
	}
	return runOf(ctx).openSnapshot(ctx, v)
}
