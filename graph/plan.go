package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/internal/query"
	"koine/kg"
)

// planner turns selection sets into plans. It does all checks and computations
// that need no read from the store.
type planner struct {
	ctx   context.Context
	run   *run
	op    *graphql.OperationContext
	field *executor.Selected // the field whose selection is planned
	path  ast.Path           // below that field, without indexes
	// view is the view of the planned fields before its revision is set.
	// Cursors are bound to it.
	view kg.View
}

func newPlanner(ctx context.Context, f *executor.Selected, view kg.View) *planner {
	return &planner{ctx: ctx, run: runOf(ctx), op: f.Operation().Context, field: f, view: view}
}

func (p *planner) compiler() query.Compiler {
	return query.Compiler{Ctx: p.ctx, Labels: p.run.engine.labels, Prefixes: p.run.engine.deps.Prefixes}
}

// eachField plans the fields of a selection set that apply to an object type
// with these implementors.
func (p *planner) eachField(set ast.SelectionSet, implementors []string, plan func(f graphql.CollectedField, key []byte) error) error {
	for _, f := range graphql.CollectFields(p.op, set, implementors) {
		p.path = append(p.path, ast.PathName(f.Alias))
		err := plan(f, executor.Key(f.Alias))
		if err != nil {
			return atField(p.path, f, err)
		}
		p.path = p.path[:len(p.path)-1]
	}
	return nil
}

// coerceArgs returns the arguments of a field.
func coerceArgs[A any](p *planner, f graphql.CollectedField, coerce func(*executor.Coercer, map[string]any) (*A, error)) (*A, error) {
	return coerce(&p.field.Operation().Coercer, f.ArgumentMap(p.op.Variables))
}

// unplannedField reports a field of the schema without a plan: a bug in this
// package, which its tests look for.
func unplannedField(f graphql.CollectedField) error {
	return fmt.Errorf("no plan for the field %s", f.Name)
}
