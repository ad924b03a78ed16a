package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/internal/operation"
	"koine/kg"
)

// eventPlan is the plan of a subscription's events: the content that depends
// on the kind of subscription, and the other members of the event union.
type eventPlan struct {
	field    string
	alias    string
	key      []byte
	content  EventContent
	replaced replacedPlan
	upToDate pointPlan
	resync   pointPlan
	results  *sharedResults // nil if each stream writes its own
}

// EventContent is the part of an event in which the kinds of subscriptions
// differ.
type EventContent interface {
	// Write writes the selected fields of an event, nothing to skip it. An error
	// with CodeResync ends the subscription.
	Write(w *writer, t *EventWriter, e *operation.Event) error
}

// SharedContent is an EventContent whose results streams may share.
type SharedContent interface {
	EventContent
	// FindResult returns the result that another stream wrote of the same event, nil if none is
	// kept. The position of the event is part of it.
	FindResult(e *operation.Event) json.RawMessage
	// KeepResult keeps a result, which must not be changed afterwards, and reports whether it did.
	KeepResult(e *operation.Event, data json.RawMessage) bool
}

// changePlan is the plan of a StatementChange.
type changePlan struct {
	fields    []changeField
	statement []*statementPlan // for each `statement` and `previous`
	replaced  replacedPlan     // for lists that also report replaced graphs
	reads     bool             // some entity shows more than its name
}

type changeField struct {
	key    []byte
	name   string
	plan   int // index in statement
	commit []RecordField
}

// pointPlan is the plan of Progress and Resync, which have only scalars.
type pointPlan []scalarField

func (p *Planner) planEvent(f graphql.CollectedField, content EventContent) (plan *eventPlan, err error) {
	plan = &eventPlan{field: f.Name, alias: f.Alias, key: executor.Key(f.Alias), content: content}
	if !p.run.schema.Types[f.Definition.Type.Name()].IsAbstractType() {
		return plan, nil // an event type without positions
	}
	if plan.replaced, err = p.planReplaced(f.Selections); err != nil {
		return nil, err
	}
	if plan.upToDate, err = p.planScalars(f.Selections, ProgressImplementors); err != nil {
		return nil, err
	}
	plan.resync, err = p.planScalars(f.Selections, ResyncImplementors)
	return plan, err
}

func (p *Planner) planChange(plan *changePlan, set ast.SelectionSet) error {
	return p.EachField(set, StatementChangeImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, changeField{key: key, name: f.Name})
		return changeFieldPlan{p, plan, &plan.fields[len(plan.fields)-1]}.planNamed(f)
	})
}

// changeFieldPlan plans a field of a StatementChange.
type changeFieldPlan struct {
	planner *Planner
	plan    *changePlan
	field   *changeField
}

func (b changeFieldPlan) planStatement(f graphql.CollectedField) error { return b.planShown(f) }
func (b changeFieldPlan) planPrevious(f graphql.CollectedField) error  { return b.planShown(f) }

func (b changeFieldPlan) planShown(f graphql.CollectedField) error {
	s, err := b.planner.planStatement(f.Selections)
	b.field.plan = len(b.plan.statement)
	b.plan.statement = append(b.plan.statement, s)
	b.plan.reads = b.plan.reads || s.readsEntities()
	return err
}

func (b changeFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// PlanCommit plans a field of type Commit.
func (p *Planner) PlanCommit(set ast.SelectionSet) ([]RecordField, error) {
	return p.planRecord(set, CommitImplementors)
}

// readsEntities reports whether an entity of the statement shows more than its name.
func (plan *statementPlan) readsEntities() bool {
	for i := range plan.fields {
		if e := plan.fields[i].entity; e != nil && e.reads {
			return true
		}
	}
	return false
}

// wrapData makes the event the data of a result.
func (plan *eventPlan) wrapData(event []byte) []byte {
	b := make([]byte, 0, len(plan.key)+len(event)+2)
	b = append(append(b, '{'), plan.key...)
	return append(append(b, event...), '}')
}

// changeNode is a loaded change.
type changeNode struct {
	plan  *changePlan
	event *operation.Event
	shown [][]statementNode // the statements of each of the plan's fields
}

// loadChanges loads the change of each event: the statements of each field in one
// batch.
func (l *loader) loadChanges(plan *changePlan, events []operation.Event) ([]changeNode, error) {
	nodes := make([]changeNode, len(events))
	for i := range nodes {
		nodes[i] = changeNode{plan: plan, event: &events[i], shown: make([][]statementNode, len(plan.fields))}
		if e := &events[i].Changes[0]; e.Replaced != nil {
			if err := plan.replaced.readAgents(l.ctx, l.run, e); err != nil {
				return nil, err
			}
		}
	}
	for i := range plan.fields {
		f := &plan.fields[i]
		if f.name == "commit" {
			for k := range events {
				if err := l.run.readCommitAgents(l.ctx, f.commit, commitOf(&events[k])); err != nil {
					return nil, err
				}
			}
		}
		if f.name != "statement" && f.name != "previous" {
			continue
		}
		var all []kg.Statement
		starts := make([]int, len(events)+1)
		for k := range events {
			if e := &events[k].Changes[0]; e.Replaced != nil {
				// no statement
			} else if f.name == "statement" {
				all = append(all, e.Statement)
			} else {
				all = append(all, e.Previous...)
			}
			starts[k+1] = len(all)
		}
		statements, err := l.newStatementNodes(plan.statement[f.plan], all)
		if err != nil {
			return nil, err
		}
		for k := range nodes {
			nodes[k].shown[i] = statements[starts[k]:starts[k+1]]
			if plan.statement[f.plan].ids {
				if err := l.identifyStatements(nodes[k].shown[i], &events[k], f.name == "previous"); err != nil {
					return nil, err
				}
			}
		}
	}
	return nodes, nil
}

// identifyStatements gives the statements of a change their ids. A change shows only the
// assertions that it added or removed, so its statements have the ids of the
// revision before or after it, in a view of those assertions' sources.
func (l *loader) identifyStatements(nodes []statementNode, e *operation.Event, previous bool) (err error) {
	c := &e.Changes[0]
	for i := range nodes {
		n := &nodes[i]
		if e.Snapshot {
			n.ids, err = l.viewIDs(true)
		} else {
			view := l.view
			view.At = c.Position.Revision
			if (previous || c.Op == kg.Remove) && view.At > 1 {
				view.At--
			}
			view.Believed = []kg.AgentID{}
			for _, a := range n.statement.Assertions {
				view.Believed = append(view.Believed, a.Source)
			}
			n.ids, err = l.idsIn(view)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *changeNode) write(w *writer, store *kg.Store) {
	if c := &n.event.Changes[0]; c.Replaced != nil {
		n.plan.replaced.write(w, store, c)
		return
	}
	scalar.WriteFields(w, n.plan.fields, func(i int, f *changeField) {
		w.EnterField(f.key)
		switch f.name {
		case "__typename":
			w.B = append(w.B, `"StatementChange"`...)
		case "statement":
			n.shown[i][0].write(w)
		case "previous":
			statementNodes(n.shown[i]).write(w)
		case "commit":
			writePlannedCommit(w, store, n.event.Changes[0].Commit, f.commit)
		default:
			w.B = changeLeaves{eventLeaves{store, n.event}}.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
}

// newStatementNodes makes nodes of statements that did not come from a scan.
func (l *loader) newStatementNodes(plan *statementPlan, statements []kg.Statement) ([]statementNode, error) {
	nodes := make([]statementNode, len(statements))
	for i, s := range statements {
		nodes[i] = statementNode{plan: plan, statement: s}
	}
	return nodes, l.linkEntities(plan, nodes, nil)
}

// eventLeaves appends the scalars that events of subscriptions have in common.
type eventLeaves struct {
	store *kg.Store
	event *operation.Event
}

func (v eventLeaves) appendSnapshot(b []byte) []byte { return strconv.AppendBool(b, v.event.Snapshot) }

func (v eventLeaves) appendSnapshotEnd(b []byte) []byte {
	return strconv.AppendBool(b, v.event.SnapshotEnd)
}

func (v eventLeaves) appendPosition(b []byte) []byte {
	return AppendPosition(b, v.store, v.event.Position)
}

// changeLeaves appends the scalars of a StatementChange.
type changeLeaves struct{ eventLeaves }

func (v changeLeaves) change() *kg.Event { return &v.event.Changes[0] }

func (v changeLeaves) appendOp(b []byte) []byte {
	return scalar.AppendString(b, v.change().Op.String())
}

func (v changeLeaves) appendStatementRemains(b []byte) []byte {
	return strconv.AppendBool(b, v.change().StatementRemains)
}

func (v changeLeaves) appendChangeID(b []byte) []byte {
	c := v.change()
	if v.event.Snapshot {
		return scalar.AppendString(b, v.store.SnapshotChangeID(c.Position.Revision, c.Statement.Quad))
	}
	return scalar.AppendString(b, v.store.ChangeID(c.Position))
}

// AppendPosition writes a position token, null for the zero Position.
func AppendPosition(b []byte, store *kg.Store, p kg.Position) []byte {
	if p == (kg.Position{}) {
		return append(b, "null"...)
	}
	return scalar.AppendString(b, store.FormatPosition(p))
}

// readCommitAgents reads the records of the agents that are shown of a commit,
// which may be nil.
func (r *Run) readCommitAgents(ctx context.Context, fields []RecordField, c *kg.Commit) error {
	if c == nil {
		return nil
	}
	return r.readAgents(ctx, fields, commitLeaves{commit: c}.agentNamed)
}

// writePlannedCommit writes a commit after readCommitAgents, null for nil.
func writePlannedCommit(w *writer, store *kg.Store, c *kg.Commit, fields []RecordField) {
	if c == nil {
		w.B = append(w.B, "null"...)
		return
	}
	v := commitLeaves{store, c}
	writeRecord(w, fields, "Commit", v.appendNamed, v.agentNamed, nil)
}

// commitLeaves appends the fields of a Commit.
type commitLeaves struct {
	store  *kg.Store
	commit *kg.Commit
}

func (v commitLeaves) agentPrincipal() kg.AgentID { return v.commit.Principal }
func (v commitLeaves) agentActor() kg.AgentID     { return ActorOf(v.commit) }

func (v commitLeaves) appendID(b []byte) []byte {
	return scalar.AppendString(b, views.CommitNodeID(v.commit.Revision))
}

func (v commitLeaves) appendCommitID(b []byte) []byte {
	return scalar.AppendString(b, v.store.CommitID(v.commit.Revision))
}

func (v commitLeaves) appendRevision(b []byte) []byte {
	return scalar.AppendUint(b, uint64(v.commit.Revision))
}

func (v commitLeaves) appendTime(b []byte) []byte { return scalar.AppendTime(b, v.commit.Time) }

func (v commitLeaves) appendPrincipalID(b []byte) []byte {
	return scalar.AppendString(b, string(v.commit.Principal))
}

func (v commitLeaves) appendActorID(b []byte) []byte {
	return scalar.AppendString(b, string(ActorOf(v.commit)))
}

func (v commitLeaves) appendJustification(b []byte) []byte {
	return appendOptional(b, v.commit.Justification)
}

func (v commitLeaves) appendTaskID(b []byte) []byte    { return appendOptional(b, v.commit.TaskID) }
func (v commitLeaves) appendSessionID(b []byte) []byte { return appendOptional(b, v.commit.SessionID) }
func (v commitLeaves) appendMessageID(b []byte) []byte { return appendOptional(b, v.commit.MessageID) }

func appendOptional(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return scalar.AppendString(b, s)
}

func (plan pointPlan) appendUpToDate(b []byte, store *kg.Store, p kg.Position) []byte {
	return appendObject(b, plan, "Progress", progressLeaves{store, p}.appendNamed)
}

// progressLeaves appends the fields of Progress.
type progressLeaves struct {
	store *kg.Store
	at    kg.Position
}

func (v progressLeaves) appendPosition(b []byte) []byte { return AppendPosition(b, v.store, v.at) }

func (v progressLeaves) appendRevision(b []byte) []byte {
	return scalar.AppendUint(b, uint64(v.at.Revision))
}

func (plan pointPlan) appendResync(b []byte, store *kg.Store, err *kg.Error) []byte {
	return appendObject(b, plan, "Resync", resyncLeaves{store, err}.appendNamed)
}

// resyncLeaves appends the fields of Resync.
type resyncLeaves struct {
	store *kg.Store
	err   *kg.Error
}

func (v resyncLeaves) appendReason(b []byte) []byte {
	if v.err.Code == kg.CodeAccessChanged {
		return scalar.AppendString(b, string(v.err.Code))
	}
	return scalar.AppendString(b, v.err.Message)
}

func (v resyncLeaves) appendOldest(b []byte) []byte {
	if v.err.Oldest == nil {
		return append(b, "null"...)
	}
	return AppendPosition(b, v.store, *v.err.Oldest)
}

// ActorOf returns the agent that the principal of a commit acted for.
func ActorOf(c *kg.Commit) kg.AgentID { return cmp.Or(c.Actor, c.Principal) }
