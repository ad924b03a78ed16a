package knowledge

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/scalar"
	"koine/kg"
)

// replacedPlan is the plan of a GraphReplaced.
type replacedPlan []replacedField

type replacedField struct {
	key    []byte
	name   string
	commit []RecordField
}

func (p *Planner) planReplaced(set ast.SelectionSet) (plan replacedPlan, err error) {
	err = p.EachField(set, GraphReplacedImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := replacedField{key: key, name: f.Name}
		switch f.Name {
		case "commit":
			field.commit, err = p.PlanCommit(f.Selections)
		case "__typename", "graph", "statementsBefore", "statementsAfter", "statementsAdded", "statementsRemoved", "changeId", "position":
		default:
			return UnplannedField(f)
		}
		plan = append(plan, field)
		return err
	})
	return plan, err
}

// write writes the event. The agents of its commit have been read.
func (plan replacedPlan) write(w *writer, store *kg.Store, e *kg.Event) {
	scalar.WriteFields(w, plan, func(_ int, f *replacedField) {
		w.EnterField(f.key)
		if f.name == "commit" {
			writePlannedCommit(w, store, e.Commit, f.commit)
		} else {
			w.B = f.appendTo(w.B, store, e)
		}
		w.LeaveField()
	})
}

// readAgents reads the agents of the event's commit.
func (plan replacedPlan) readAgents(ctx context.Context, r *Run, e *kg.Event) error {
	for i := range plan {
		if err := r.readCommitAgents(ctx, plan[i].commit, e.Commit); err != nil {
			return err
		}
	}
	return nil
}

func (f *replacedField) appendTo(b []byte, store *kg.Store, e *kg.Event) []byte {
	r := e.Replaced
	count := func(n uint64) []byte {
		if r.Uncounted {
			return append(b, "null"...)
		}
		return scalar.AppendUint(b, n)
	}
	switch f.name {
	case "graph":
		return scalar.AppendGraph(b, r.Graph)
	case "statementsBefore":
		return count(r.Before)
	case "statementsAfter":
		return count(r.Statements)
	case "statementsAdded":
		return count(r.Added)
	case "statementsRemoved":
		return count(r.Removed)
	case "changeId":
		return scalar.AppendString(b, store.ChangeID(e.Position))
	case "position":
		return AppendPosition(b, store, e.Position)
	}
	return append(b, `"GraphReplaced"`...)
}
