package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/kg"
)

// planner turns selection sets into plans: everything that can be checked or
// computed before the store is read.
type planner struct {
	ctx  context.Context
	run  *run
	op   *graphql.OperationContext
	path ast.Path // of the field that is being planned, without indexes
	// lists tells behind how many names of path an index would stand.
	lists []int
	// view is what the planned fields read, before a revision was set: what
	// cursors are bound to.
	view kg.View
}

func newPlanner(ctx context.Context, view kg.View) *planner {
	return &planner{
		ctx: ctx, run: runOf(ctx), op: graphql.GetOperationContext(ctx),
		path: graphql.GetPath(ctx), view: view,
	}
}

// eachField plans the fields of a selection set, as they apply to an object of
// the type with these implementors.
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

// args are the arguments of a field, coerced by the generated code.
func (p *planner) args(f graphql.CollectedField, parse func(context.Context, map[string]any) (map[string]any, error)) (map[string]any, error) {
	args, err := parse(p.ctx, f.ArgumentMap(p.op.Variables))
	if err == nil {
		return args, nil
	}
	// The generated code thinks that the argument is one of the root field.
	out := &gqlerror.Error{Message: err.Error(), Path: slices.Clone(p.path), Err: err}
	var g *gqlerror.Error
	if root := graphql.GetPath(p.ctx); errors.As(err, &g) && len(g.Path) > len(root) {
		out.Message, out.Err = g.Message, g.Err
		extend(out, "field", g.Path[len(root):].String())
	}
	return nil, out
}

// unplanned is the answer to a field that the schema has and the plan does
// not: a mistake in this package, which its tests look for.
func unplanned(f graphql.CollectedField) error {
	return fmt.Errorf("no plan for the field %s", f.Name)
}

// argument is a typed argument; absent and null are the zero value.
func argument[T any](args map[string]any, name string) T {
	v, _ := args[name].(T)
	return v
}

// inList plans what is inside of a list.
func (p *planner) inList(plan func() error) error {
	p.lists = append(p.lists, len(p.path))
	err := plan()
	p.lists = p.lists[:len(p.lists)-1]
	return err
}
