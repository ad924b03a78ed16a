package graph

import (
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/kg"
)

// eventPlan is what a subscription asks of its events, for each type of the
// union StatementEvent.
type eventPlan struct {
	alias    string
	key      []byte
	change   changePlan
	upToDate pointPlan
	resync   pointPlan
}

// changePlan is what is asked of a StatementChange.
type changePlan struct {
	fields    []changeField
	statement []*statementPlan // of each `statement` and `previous`
	reads     bool             // some entity shows more than its name
}

type changeField struct {
	key    []byte
	name   string
	plan   int // index in statement
	commit []scalarField
}

// pointPlan is what is asked of UpToDate and Resync, which hold scalars only.
type pointPlan []scalarField

func (p *planner) event(f graphql.CollectedField) (*eventPlan, error) {
	plan := &eventPlan{alias: f.Alias, key: append(appendString(nil, f.Alias), ':')}
	if err := p.change(&plan.change, f.Selections); err != nil {
		return nil, err
	}
	var err error
	if plan.upToDate, err = p.scalars(f.Selections, upToDateImplementors, "position", "revision"); err != nil {
		return nil, err
	}
	plan.resync, err = p.scalars(f.Selections, resyncImplementors, "reason", "oldest")
	return plan, err
}

func (p *planner) change(plan *changePlan, set ast.SelectionSet) error {
	return p.eachField(set, statementChangeImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := changeField{key: key, name: f.Name}
		switch f.Name {
		case "statement", "previous":
			var s *statementPlan
			s, err = p.statement(f.Selections)
			field.plan = len(plan.statement)
			plan.statement = append(plan.statement, s)
			plan.reads = plan.reads || s.reads()
		case "commit":
			field.commit, err = p.scalars(f.Selections, commitImplementors,
				"id", "revision", "time", "principal", "actor", "justification", "taskId", "sessionId", "messageId")
		case "__typename", "op", "statementRemains", "changeId", "snapshot", "snapshotEnd", "position":
		default:
			return unplanned(f)
		}
		plan.fields = append(plan.fields, field)
		return err
	})
}

// reads tells whether an entity of the statement shows more than its name.
func (plan *statementPlan) reads() bool {
	for i := range plan.fields {
		if e := plan.fields[i].entity; e != nil && e.reads {
			return true
		}
	}
	return false
}

// wrap makes the event the data of a result.
func (plan *eventPlan) wrap(event []byte) []byte {
	b := make([]byte, 0, len(plan.key)+len(event)+2)
	b = append(append(b, '{'), plan.key...)
	return append(append(b, event...), '}')
}

func (plan *changePlan) write(l *loader, e *operation.Event) ([]byte, error) {
	b := []byte{'{'}
	for i := range plan.fields {
		if i > 0 {
			b = append(b, ',')
		}
		f := &plan.fields[i]
		b = append(b, f.key...)
		switch f.name {
		case "statement":
			nodes, err := l.known(plan.statement[f.plan], []kg.Statement{e.Change.Statement})
			if err != nil {
				return nil, err
			}
			b = nodes[0].write(b)
		case "previous":
			nodes, err := l.known(plan.statement[f.plan], e.Change.Previous)
			if err != nil {
				return nil, err
			}
			b = append(b, '[')
			for k := range nodes {
				if k > 0 {
					b = append(b, ',')
				}
				b = nodes[k].write(b)
			}
			b = append(b, ']')
		default:
			b = f.write(b, l.engine, e)
		}
	}
	return append(b, '}'), nil
}

// known makes nodes of statements that came as such, not as rows.
func (l *loader) known(plan *statementPlan, statements []kg.Statement) ([]statementNode, error) {
	nodes := make([]statementNode, len(statements))
	for i, s := range statements {
		nodes[i] = statementNode{plan: plan, statement: s}
	}
	return nodes, l.link(plan, nodes, nil)
}

func (f *changeField) write(b []byte, engine *Engine, e *operation.Event) []byte {
	store := engine.deps.Store
	switch f.name {
	case "op":
		return appendString(b, e.Change.Op.String())
	case "statementRemains":
		return strconv.AppendBool(b, e.Change.StatementRemains)
	case "changeId":
		if e.Snapshot {
			return appendString(b, store.SnapshotChangeID(e.Change.Position.Revision, e.Change.Statement.Quad))
		}
		return appendString(b, store.ChangeID(e.Change.Position))
	case "snapshot":
		return strconv.AppendBool(b, e.Snapshot)
	case "snapshotEnd":
		return strconv.AppendBool(b, e.SnapshotEnd)
	case "commit":
		return appendCommit(b, engine, e.Change.Commit, f.commit)
	case "position":
		return appendPosition(b, store, e.Position)
	}
	return append(b, `"StatementChange"`...)
}

// appendPosition writes a token, null for the zero position.
func appendPosition(b []byte, store *kg.Store, p kg.Position) []byte {
	if p == (kg.Position{}) {
		return append(b, "null"...)
	}
	return appendString(b, store.FormatPosition(p))
}

func appendCommit(b []byte, engine *Engine, c *kg.Commit, fields []scalarField) []byte {
	if c == nil {
		return append(b, "null"...)
	}
	return appendObject(b, fields, "Commit", func(b []byte, name string) []byte {
		switch name {
		case "id":
			return appendString(b, engine.deps.Store.CommitID(c.Revision))
		case "revision":
			return appendUint(b, uint64(c.Revision))
		case "time":
			return appendTime(b, c.Time)
		case "principal":
			return appendString(b, string(c.Principal))
		case "actor":
			if c.Actor == "" {
				return appendString(b, string(c.Principal))
			}
			return appendString(b, string(c.Actor))
		case "justification":
			return appendOptional(b, c.Justification)
		case "taskId":
			return appendOptional(b, c.TaskID)
		case "sessionId":
			return appendOptional(b, c.SessionID)
		}
		return appendOptional(b, c.MessageID)
	})
}

func appendOptional(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

func (plan pointPlan) writeUpToDate(engine *Engine, p kg.Position) []byte {
	return appendObject(nil, plan, "UpToDate", func(b []byte, name string) []byte {
		if name == "revision" {
			return appendUint(b, uint64(p.Revision))
		}
		return appendPosition(b, engine.deps.Store, p)
	})
}

func (plan pointPlan) writeResync(engine *Engine, err *kg.Error) []byte {
	return appendObject(nil, plan, "Resync", func(b []byte, name string) []byte {
		switch {
		case name == "reason":
			return appendString(b, err.Message)
		case err.Oldest == nil:
			return append(b, "null"...)
		}
		return appendPosition(b, engine.deps.Store, *err.Oldest)
	})
}
