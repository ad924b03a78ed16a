package knowledge

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

// entityEvent is the content of Subscription.entityChanged.
type entityEvent struct {
	iri    kg.Term
	fields []entityEventField
	reads  bool
}

type entityEventField struct {
	key    []byte
	name   string
	entity *entityPlan
	change *changePlan
	commit []RecordField
}

// EntityChanged establishes Subscription.entityChanged.
func (*Subscription) EntityChanged(ctx context.Context, f *executor.Selected, args *SubscriptionEntityChangedArgs) (*Stream, error) {
	iri, depth := args.Iri, args.Depth
	return SubscribeTo(ctx, f, args.Resume, args.View, func(p *Planner, field ast.SelectionSet) (EventContent, changefeed.Subject, error) {
		if depth < 0 || depth > changefeed.MaxDepth {
			return nil, nil, kg.Errorf(kg.CodeInvalid, "depth must be between 0 and %d, not %d", changefeed.MaxDepth, depth).At("depth")
		}
		content := &entityEvent{iri: iri}
		limits := p.run.Reader.Limits
		subject := &changefeed.Surroundings{Entity: iri, Depth: depth, FromView: p.View, Entities: limits.WatchedEntities, Reads: limits.WatchedReads}
		return content, subject, p.planEntityEvent(content, field)
	})
}

func (p *Planner) planEntityEvent(c *entityEvent, set ast.SelectionSet) error {
	return p.EachField(set, EntityChangeImplementors, func(f graphql.CollectedField, key []byte) error {
		c.fields = append(c.fields, entityEventField{key: key, name: f.Name})
		return entityChangeFieldPlan{p, c, &c.fields[len(c.fields)-1]}.planNamed(f)
	})
}

// entityChangeFieldPlan plans a field of an EntityChange.
type entityChangeFieldPlan struct {
	planner *Planner
	event   *entityEvent
	field   *entityEventField
}

func (b entityChangeFieldPlan) planEntity(f graphql.CollectedField) (err error) {
	b.field.entity, err = b.planner.planEntity(f.Selections)
	b.event.reads = true // needed in any case, to know whether the entity exists
	return err
}

func (b entityChangeFieldPlan) planChanges(f graphql.CollectedField) error {
	b.field.change = &changePlan{}
	err := b.planner.planChange(b.field.change, f.Selections)
	b.event.reads = b.event.reads || b.field.change.reads
	return err
}

func (b entityChangeFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// entityChangeLeaves appends the scalars of an EntityChange.
type entityChangeLeaves struct{ eventLeaves }

func (c *entityEvent) Write(w *writer, t *EventWriter, e *operation.Event) error {
	l, err := t.loaderFor(e, c.reads)
	if err != nil {
		return err
	}
	scalar.WriteFields(w, c.fields, func(_ int, f *entityEventField) {
		w.EnterField(f.key)
		if err == nil {
			err = c.writeField(w, f, l, e)
		}
		w.LeaveField()
	})
	return err
}

func (c *entityEvent) writeField(w *writer, f *entityEventField, l *loader, e *operation.Event) error {
	switch f.name {
	case "__typename":
		w.B = append(w.B, `"EntityChange"`...)
	case "entity":
		return l.writeEntity(w, f.entity, c.iri)
	case "changes":
		return l.writeChanges(w, f.change, e)
	case "commit":
		return l.run.WriteCommitOf(w, e, f.commit)
	default:
		w.B = entityChangeLeaves{eventLeaves{l.reader.Store, e}}.appendNamed(w.B, f.name)
	}
	return nil
}

// writeEntity writes an entity, null if the view shows nothing of it.
func (l *loader) writeEntity(w *writer, plan *entityPlan, iri kg.Term) error {
	node, err := l.loadEntity(plan, iri)
	if node == nil || err != nil {
		w.B = append(w.B, "null"...)
		return err
	}
	node.write(w)
	return nil
}

// writeChanges writes the changes of an event as a list.
func (l *loader) writeChanges(w *writer, plan *changePlan, e *operation.Event) error {
	each := make([]operation.Event, len(e.Changes))
	for i := range each {
		each[i] = operation.Event{Changes: e.Changes[i : i+1], Position: e.Changes[i].Position}
	}
	nodes, err := l.loadChanges(plan, each)
	if err != nil {
		return err
	}
	scalar.WriteList(w, len(nodes), func(i int) {
		from := len(w.B)
		nodes[i].write(w, l.reader.Store)
		if err == nil {
			err = l.run.ChargeBytes(len(w.B) - from)
		}
	})
	return err
}

// WriteCommitOf writes the commit of an event.
func (r *Run) WriteCommitOf(w *writer, e *operation.Event, fields []RecordField) error {
	c := commitOf(e)
	if err := r.readCommitAgents(w.Ctx, fields, c); err != nil {
		return err
	}
	writePlannedCommit(w, r.Reader.Store, c, fields)
	return nil
}

// commitOf returns the commit of an event, nil in a snapshot.
func commitOf(e *operation.Event) *kg.Commit {
	if len(e.Changes) == 0 {
		return nil
	}
	return e.Changes[0].Commit
}
