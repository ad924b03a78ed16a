package knowledge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/internal/query"
	"koine/kg"
)

// Planner turns selection sets into plans. It does all checks and computations
// that need no read from the store.
type Planner struct {
	ctx   context.Context
	run   *Run
	op    *graphql.OperationContext
	field *executor.Selected // the field that is planned
	path  ast.Path           // below that field, without indexes
	// View is the view of the planned fields before its revision is set.
	// Cursors are bound to it.
	View kg.View
}

func newPlanner(ctx context.Context, f *executor.Selected, view kg.View) *Planner {
	return &Planner{ctx: ctx, run: RunOf(ctx), op: f.Operation().Context, field: f, View: view}
}

func (p *Planner) compiler() query.Compiler {
	return query.Compiler{Ctx: p.ctx, Labels: p.run.Reader.Labels, Prefixes: p.run.Reader.Prefixes, Texts: p.run.Reader.Texts(p.View)}
}

// EachField plans the fields of a selection set that apply to an object type
// with these implementors.
func (p *Planner) EachField(set ast.SelectionSet, implementors []string, plan func(f graphql.CollectedField, key []byte) error) error {
	depth := len(p.path)
	for _, f := range executor.CollectFields(p.op, set, implementors) {
		p.path = append(p.path[:depth], ast.PathName(f.Alias))
		err := plan(f, executor.Key(f.Alias))
		if err != nil {
			err = fault.AtField(p.path, f, err)
			p.path = p.path[:depth]
			return err
		}
	}
	p.path = p.path[:depth]
	return nil
}

// coerceArgs returns the arguments of a field.
func coerceArgs[A any](p *Planner, f graphql.CollectedField, coerce func(*executor.Coercer, map[string]any) (*A, error)) (*A, error) {
	return coerce(&p.field.Operation().Coercer, f.ArgumentMap(p.op.Variables))
}

// fieldError is the error of a planned field that may be null. The field is null
// in each object, and the others are written.
type fieldError struct {
	err error // its path begins below the field
	at  *ast.Position
}

// write writes the field.
func (f *fieldError) write(w *writer) { w.Failed(f.at, f.err) }

// failAlone returns the error with which a field fails alone, nil if the field
// must not be null: then the object that has it fails.
func (p *Planner) failAlone(f graphql.CollectedField, err error) *fieldError {
	if f.Definition.Type.NonNull {
		return nil
	}
	var g *gqlerror.Error
	if errors.As(err, &g) && len(g.Path) >= len(p.path) {
		below := *g
		below.Path = slices.Clone(g.Path[len(p.path):])
		err = &below
	}
	return &fieldError{err, f.Position}
}

// UnplannedField reports a field of the schema without a plan: a bug in this
// package, which its tests look for.
func UnplannedField(f graphql.CollectedField) error {
	return fmt.Errorf("no plan for the field %s", f.Name)
}
