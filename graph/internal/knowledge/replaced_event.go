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
	err = p.EachField(set, GraphReplacedImplementors, func(f graphql.CollectedField, key []byte) error {
		plan = append(plan, replacedField{key: key, name: f.Name})
		return replacedFieldPlan{p, &plan[len(plan)-1]}.planNamed(f)
	})
	return plan, err
}

// replacedFieldPlan plans a field of a GraphReplaced.
type replacedFieldPlan struct {
	planner *Planner
	field   *replacedField
}

func (b replacedFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// write writes the event. The agents of its commit have been read.
func (plan replacedPlan) write(w *writer, store *kg.Store, e *kg.Event) {
	scalar.WriteFields(w, plan, func(_ int, f *replacedField) {
		w.EnterField(f.key)
		switch f.name {
		case "__typename":
			w.B = append(w.B, `"GraphReplaced"`...)
		case "commit":
			writePlannedCommit(w, store, e.Commit, f.commit)
		default:
			w.B = replacedLeaves{store, e}.appendNamed(w.B, f.name)
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

// replacedLeaves appends the scalars of a GraphReplaced.
type replacedLeaves struct {
	store *kg.Store
	event *kg.Event
}

func (v replacedLeaves) appendGraph(b []byte) []byte {
	return scalar.AppendGraph(b, v.event.Replaced.Graph)
}

func (v replacedLeaves) appendStatementsBefore(b []byte) []byte {
	return v.appendNumber(b, v.event.Replaced.Before)
}

func (v replacedLeaves) appendStatementsAfter(b []byte) []byte {
	return v.appendNumber(b, v.event.Replaced.Statements)
}

func (v replacedLeaves) appendStatementsAdded(b []byte) []byte {
	return v.appendNumber(b, v.event.Replaced.Added)
}

func (v replacedLeaves) appendStatementsRemoved(b []byte) []byte {
	return v.appendNumber(b, v.event.Replaced.Removed)
}

func (v replacedLeaves) appendNumber(b []byte, n uint64) []byte {
	if v.event.Replaced.Uncounted {
		return append(b, "null"...)
	}
	return scalar.AppendUint(b, n)
}

func (v replacedLeaves) appendChangeID(b []byte) []byte {
	return scalar.AppendString(b, v.store.ChangeID(v.event.Position))
}

func (v replacedLeaves) appendPosition(b []byte) []byte {
	return AppendPosition(b, v.store, v.event.Position)
}
