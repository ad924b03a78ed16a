package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/query"
	"koine/kg"
)

// planner turns selection sets into plans. It does all checks and computations
// that need no read from the store.
type planner struct {
	ctx  context.Context
	run  *run
	op   *graphql.OperationContext
	path ast.Path // of the field being planned, without indexes
	// lists holds the lengths of path's prefixes after which an index belongs.
	lists []int
	// view is the view of the planned fields before its revision is set.
	// Cursors are bound to it.
	view kg.View
}

func newPlanner(ctx context.Context, view kg.View) *planner {
	return &planner{
		ctx: ctx, run: runOf(ctx), op: graphql.GetOperationContext(ctx),
		path: graphql.GetPath(ctx), view: view,
	}
}

func (p *planner) compiler() query.Compiler {
	return query.Compiler{Ctx: p.ctx, Labels: p.run.engine.labels, Prefixes: p.run.engine.deps.Prefixes}
}

// eachField plans the fields of a selection set that apply to an object type
// with these implementors.
func (p *planner) eachField(set ast.SelectionSet, implementors []string, plan func(f graphql.CollectedField, key []byte) error) error {
	for _, f := range graphql.CollectFields(p.op, set, implementors) {
		p.path = append(p.path, ast.PathName(f.Alias))
		err := plan(f, append(appendString(nil, f.Alias), ':'))
		if err != nil {
			return atPath(p.path, err)
		}
		p.path = p.path[:len(p.path)-1]
	}
	return nil
}

// parseArgs returns the arguments of a field, coerced by the generated code.
func (p *planner) parseArgs(f graphql.CollectedField, parse func(context.Context, map[string]any) (map[string]any, error)) (map[string]any, error) {
	args, err := parse(p.ctx, f.ArgumentMap(p.op.Variables))
	if err == nil {
		return args, nil
	}
	// The generated code assumes that the argument belongs to the root field.
	out := &gqlerror.Error{Message: err.Error(), Path: slices.Clone(p.path), Err: err}
	var g *gqlerror.Error
	if root := graphql.GetPath(p.ctx); errors.As(err, &g) && len(g.Path) > len(root) {
		out.Message, out.Err = g.Message, g.Err
		setExtension(out, "field", g.Path[len(root):].String())
	}
	return nil, out
}

// unplannedField reports a field of the schema without a plan: a bug in this
// package, which its tests look for.
func unplannedField(f graphql.CollectedField) error {
	return fmt.Errorf("no plan for the field %s", f.Name)
}

// argumentOf returns a typed argument, the zero value if it is absent or null.
func argumentOf[T any](args map[string]any, name string) T {
	v, _ := args[name].(T)
	return v
}

// inList plans the content of a list.
func (p *planner) inList(plan func() error) error {
	p.lists = append(p.lists, len(p.path))
	err := plan()
	p.lists = p.lists[:len(p.lists)-1]
	return err
}
