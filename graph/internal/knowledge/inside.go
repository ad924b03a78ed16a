package knowledge

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/graph/internal/views"
	"koine/kg"
)

// Channels, messages and tasks are written by their tables, entities and
// statements as they were planned and loaded. Each can contain the other.

// Objects writes the objects of domain packages, which have tables, inside of
// entities and statements.
type Objects interface {
	// WriteTyped writes the channel, message or task that an entity is. It is null
	// for any other entity and for one that the caller may not see.
	WriteTyped(w *executor.Writer, f *executor.Selected, entity kg.Term) error
	// WriteOrigins writes a page of the messages or the tasks that the commits of a
	// statement's assertions came with.
	WriteOrigins(w *executor.Writer, f *executor.Selected, args PageArgs, st *kg.Statement) error
	// ReadsRecord reports whether a selection shows more of an agent than is known
	// without its record.
	ReadsRecord(f *executor.Selected) bool
	// ReadAgent reads the record of an agent.
	ReadAgent(ctx context.Context, id kg.AgentID) error
	// WriteAgent writes an agent after ReadAgent.
	WriteAgent(w *executor.Writer, f *executor.Selected, id kg.AgentID)
}

// readInside begins to read a field inside of an object that its table writes.
// A budget does not cut such a field.
func readInside(ctx context.Context, f *executor.Selected) (reading, error) {
	v, err := RunOf(ctx).FieldView(nil)
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

// ReadOwnEntity answers a field that shows the entity of a koine object. Its
// system graph is included unless the request's view names graphs.
func ReadOwnEntity(ctx context.Context, f *executor.Selected, entity kg.Term) (executor.Value, error) {
	r, err := readInside(ctx, f)
	if err != nil {
		return nil, err
	}
	if r.View.Graphs == nil {
		r.View.AllGraphs = true
	}
	return r.showEntity(entity)
}

// SelectedField returns the selection of a planned field for values that their
// tables write.
func (p *Planner) SelectedField(f graphql.CollectedField) *executor.Selected {
	return p.field.Operation().Field(f)
}

// fragment is the text of a field that was written while the object that has it
// was loaded. The paths of its errors begin at the field.
type fragment struct {
	json []byte
	errs gqlerror.List
}

// render writes a field that has a table. A budget does not cut it.
func (l *loader) render(write func(w *writer) error) (fragment, error) {
	r := l.run
	if c := r.cutter; c != nil { // see readInside
		r.cutter = nil
		defer func() { r.cutter = c }()
	}
	w := r.NewWriter(r.with(l.ctx))
	if err := write(w); err != nil {
		if len(w.Errors) == 0 {
			return fragment{}, err
		}
		w.B = []byte("null")
	}
	return fragment{w.B, w.Errors}, nil
}

// readAsNode begins to read in the view of an id.
func readAsNode(ctx context.Context, f *executor.Selected, view *views.ViewInput) (reading, error) {
	r, err := beginReading(ctx, f, view, nil)
	if err != nil && view != nil {
		e := *kg.AsError(err)
		e.Field = "id"
		err = &e
	}
	return r, err
}

// ReadEntityNode returns the entity of an id as a node, nil for none.
func ReadEntityNode(ctx context.Context, f *executor.Selected, view *views.ViewInput, name string) (executor.Value, error) {
	r, err := readAsNode(ctx, f, view)
	if err != nil {
		return nil, err
	}
	iri, err := kg.ParseIRI(name)
	if err != nil {
		return nil, nil // an invalid id names nothing
	}
	return r.showEntity(iri)
}

// ReadStatementNode returns the statement of an id as a node, nil for none.
func ReadStatementNode(ctx context.Context, f *executor.Selected, view *views.ViewInput, key string) (executor.Value, error) {
	r, err := readAsNode(ctx, f, view)
	if err != nil {
		return nil, err
	}
	plan, err := r.planStatement(r.field.Selections)
	if err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	row, found, err := views.FindStatement(l.snapshot, key)
	if err != nil || !found {
		return nil, err
	}
	nodes, err := l.loadStatements(plan, []kg.Row{row})
	if err != nil {
		return nil, err
	}
	return r.answer(&nodes[0]), nil
}
