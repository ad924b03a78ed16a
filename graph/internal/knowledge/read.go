package knowledge

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/executor"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/kg"
)

// Query has the functions of the planned fields of Query.
type Query struct{}

// reading is a field during its planning and loading.
type reading struct {
	*Planner
	field graphql.CollectedField
}

// beginReading begins to read a root field.
func beginReading(ctx context.Context, f *executor.Selected, view *views.ViewInput, budget *limit.BudgetInput) (reading, error) {
	v, err := RunOf(ctx).FieldView(view)
	if err != nil {
		return reading{}, err
	}
	if _, err := RunOf(ctx).newCutter(budget); err != nil {
		return reading{}, err
	}
	return reading{newPlanner(ctx, f, v), f.CollectedField}, nil
}

// openLoader opens the snapshot to read.
func (r reading) openLoader() (*loader, error) {
	s, err := r.run.OpenSnapshot(r.ctx, r.View)
	if err != nil {
		return nil, err
	}
	return newLoader(r.ctx, r.run, s, r.View), nil
}

// answer returns the value of the field. Under a budget its lists are filled
// later.
func (r reading) answer(v executor.Value) executor.Value {
	v = boundedValue{v, r.run}
	if c := r.run.cutter; c != nil {
		c.value = v
		return openValue{v, c}
	}
	return v
}

// boundedValue is a value with a text of at most Limits.ResultBytes.
type boundedValue struct {
	executor.Value
	run *Run
}

func (v boundedValue) Write(w *executor.Writer) error {
	if err := w.Ctx.Err(); err != nil {
		return err
	}
	// Preallocate the loaded bytes, and as many for the names of fields.
	w.B = slices.Grow(w.B, min(2*v.run.bytes+256, maxGuess))
	from := len(w.B)
	if err := v.Value.Write(w); err != nil {
		return err
	}
	if len(w.B)-from > v.run.Reader.Limits.ResultBytes {
		return v.run.Reader.Limits.ResultTooLarge()
	}
	return nil
}

// Entity answers Query.entity.
func (*Query) Entity(ctx context.Context, f *executor.Selected, args *QueryEntityArgs) (executor.Value, error) {
	r, err := beginReading(ctx, f, args.View, nil)
	if err != nil {
		return nil, err
	}
	return r.showEntity(args.Iri)
}

// showEntity answers a field of type Entity.
func (r reading) showEntity(iri kg.Term) (executor.Value, error) {
	plan, err := r.entityPlan()
	if err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	node, err := l.loadEntity(plan, iri)
	if node == nil || err != nil {
		return nil, err
	}
	return r.answer(node), nil
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
	if !nodes[0].found && !nodes[0].listsAny() {
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

// Entities answers Query.entities.
func (*Query) Entities(ctx context.Context, f *executor.Selected, args *QueryEntitiesArgs) (executor.Value, error) {
	return readPage(ctx, f, args.View, args.Budget, func(p *Planner, f graphql.CollectedField) (*connection, error) {
		return p.planEntityConnection(f, entityListArgs{args.Where, args.OrderBy, PageArgs{args.First, args.After, args.Last, args.Before}})
	}, (*loader).entityPage)
}

// Statements answers Query.statements.
func (*Query) Statements(ctx context.Context, f *executor.Selected, args *QueryStatementsArgs) (executor.Value, error) {
	return readPage(ctx, f, args.View, args.Budget, func(p *Planner, f graphql.CollectedField) (*connection, error) {
		return p.planStatementConnection(f, statementListArgs{args.Where, args.OrderBy, PageArgs{args.First, args.After, args.Last, args.Before}})
	}, (*loader).statementPage)
}

func readPage(
	ctx context.Context, f *executor.Selected, view *views.ViewInput, budget *limit.BudgetInput,
	plan func(*Planner, graphql.CollectedField) (*connection, error), load func(*loader, *connection) (*page, error),
) (executor.Value, error) {
	r, err := beginReading(ctx, f, view, budget)
	if err != nil {
		return nil, err
	}
	c, err := plan(r.Planner, r.field)
	if err != nil {
		return nil, err
	}
	l, err := r.pageLoader(c)
	if err != nil {
		return nil, err
	}
	page, err := load(l, c)
	if err != nil {
		return nil, err
	}
	return r.answer(page), nil
}

// pageLoader opens the snapshot of a page. A page with a cursor later opens
// the snapshot of the walk's first page itself. Opening the newest one as well
// would make the answer's revision look newer.
func (r reading) pageLoader(c *connection) (*loader, error) {
	if c.after != nil {
		return newLoader(r.ctx, r.run, nil, r.View), nil
	}
	return r.openLoader()
}

// OpenView opens the snapshot of a view argument.
func OpenView(ctx context.Context, view *views.ViewInput) (*kg.Snapshot, error) {
	v, err := RunOf(ctx).FieldView(view)
	if err != nil {
		return nil, err
	}
	return RunOf(ctx).OpenSnapshot(ctx, v)
}
