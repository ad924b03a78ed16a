package knowledge

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/kg"
)

// scalarField is a field of an object that has only scalars.
type scalarField struct {
	key  []byte
	name string
}

// planScalars plans an object with only scalar fields, whose generated appendNamed
// knows all of them.
func (p *Planner) planScalars(set ast.SelectionSet, implementors []string) (fields []scalarField, err error) {
	err = p.EachField(set, implementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, scalarField{key, f.Name})
		return nil
	})
	return fields, err
}

// appendObject writes an object of scalars.
func appendObject(b []byte, fields []scalarField, typename string, value func(b []byte, name string) []byte) []byte {
	return scalar.AppendFields(b, fields, func(b []byte, _ int, f *scalarField) []byte {
		if b = append(b, f.key...); f.name == "__typename" {
			return scalar.AppendString(b, typename)
		}
		return value(b, f.name)
	})
}

// RecordField is a field of an object of scalars, agents, and objects of scalars.
type RecordField struct {
	scalarField
	agent *executor.Selected // of a field that is an agent
	reads bool               // the agent's record is shown
	// object has the fields of a field that is an object of scalars; nil for others.
	object []scalarField
}

// planRecord plans an object with only scalar fields, agents, and objects of scalars.
func (p *Planner) planRecord(set ast.SelectionSet, implementors []string) (fields []RecordField, err error) {
	err = p.EachField(set, implementors, func(f graphql.CollectedField, key []byte) error {
		field := RecordField{scalarField: scalarField{key, f.Name}}
		var err error
		switch {
		case f.Name == "__typename":
		case f.Definition.Type.Name() == "Agent":
			field.agent = p.SelectedField(f)
			field.reads = p.run.Reader.Objects.ReadsRecord(field.agent)
		case f.Definition.Type.Name() == "Embedding":
			field.object, err = p.planScalars(f.Selections, EmbeddingImplementors)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

// writeRecord writes an object of scalars and agents. agent returns the agent of a field,
// object appends one that is an object.
func writeRecord(w *writer, fields []RecordField, typename string, value func(b []byte, name string) []byte, agent func(name string) kg.AgentID, object func(b []byte, name string, fields []scalarField) []byte) {
	scalar.WriteFields(w, fields, func(_ int, f *RecordField) {
		switch {
		case f.agent != nil:
			w.EnterField(f.key)
			RunOf(w.Ctx).Reader.Objects.WriteAgent(w, f.agent, agent(f.name))
			w.LeaveField()
		case f.object != nil:
			w.B = object(append(w.B, f.key...), f.name, f.object)
		case f.name == "__typename":
			w.B = scalar.AppendString(append(w.B, f.key...), typename)
		default:
			w.B = value(append(w.B, f.key...), f.name)
		}
	})
}

// readAgents reads the records of the agents that a planned object shows.
func (r *Run) readAgents(ctx context.Context, fields []RecordField, agent func(name string) kg.AgentID) error {
	for i := range fields {
		if f := &fields[i]; f.reads {
			if err := r.Reader.Objects.ReadAgent(ctx, agent(f.name)); err != nil {
				return err
			}
		}
	}
	return nil
}
