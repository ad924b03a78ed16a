package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/kg"
)

// Channels, messages and tasks are written by their tables, entities and
// statements as they were planned and loaded. Each can contain the other.

// readInside begins to read a field inside of an object that its table writes.
// A budget does not cut such a field.
func readInside(ctx context.Context, f *executor.Selected) (reading, error) {
	v, err := runOf(ctx).fieldView(nil)
	return reading{newPlanner(ctx, f, v), f.CollectedField}, err
}

// ReadEntity returns the value of a field of type Entity, in the view of the
// operation: for fields of types that are made at run time.
func ReadEntity(ctx context.Context, f *executor.Selected, iri kg.Term) (executor.Value, error) {
	r, err := readInside(ctx, f)
	if err != nil {
		return nil, err
	}
	return r.showEntity(iri)
}

// readOwnEntity answers a field that shows the entity of a koine object. Its
// system graph is included unless the request's view names graphs.
func readOwnEntity(ctx context.Context, f *executor.Selected, entity kg.Term) (executor.Value, error) {
	r, err := readInside(ctx, f)
	if err != nil {
		return nil, err
	}
	if r.view.Graphs == nil {
		r.view.AllGraphs = true
	}
	return r.showEntity(entity)
}

// selected returns the selection of a planned field for values that their
// tables write.
func (p *planner) selected(f graphql.CollectedField) *executor.Selected {
	return p.field.Operation().Field(f)
}

// fragment is the text of a field that was written while the object that has it
// was loaded. The paths of its errors begin at the field.
type fragment struct {
	json []byte
	errs gqlerror.List
}

// render writes a field whose value its table writes. A budget does not cut it.
func (l *loader) render(write func(w *writer) error) (fragment, error) {
	r := l.run
	if c := r.cutter; c != nil { // see readInside
		r.cutter = nil
		defer func() { r.cutter = c }()
	}
	w := r.newWriter(context.WithValue(l.ctx, runKey{}, r))
	if err := write(w); err != nil {
		if len(w.Errors) == 0 {
			return fragment{}, err
		}
		w.B = []byte("null")
	}
	return fragment{w.B, w.Errors}, nil
}

// writeOptional writes an object that may be nil.
func writeOptional[T any](w *writer, f *executor.Selected, object *executor.Object, of *T, err error) error {
	switch {
	case err != nil:
		return err
	case of == nil:
		return w.Nil(f)
	}
	return w.Object(f.On(object), of)
}
