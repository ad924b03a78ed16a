package graph

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

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
	commit []scalarField
}

// followEntity establishes Subscription.entityChanged.
func followEntity(ctx context.Context, iri kg.Term, depth int, resume *Position, view *ViewInput) error {
	return subscribeTo(ctx, resume, view, func(p *planner, field ast.SelectionSet) (eventContent, changefeed.Subject, error) {
		if depth < 0 || depth > changefeed.MaxDepth {
			return nil, nil, kg.Errorf(kg.CodeInvalid, "depth must be between 0 and %d, not %d", changefeed.MaxDepth, depth).At("depth")
		}
		content := &entityEvent{iri: iri}
		limits := p.run.engine.limits
		subject := &changefeed.Surroundings{Entity: iri, Depth: depth, FromView: p.view, Entities: limits.WatchedEntities, Reads: limits.WatchedReads}
		return content, subject, p.planEntityEvent(content, field)
	})
}

func (p *planner) planEntityEvent(c *entityEvent, set ast.SelectionSet) error {
	return p.eachField(set, entityChangeImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := entityEventField{key: key, name: f.Name}
		switch f.Name {
		case "entity":
			field.entity, err = p.planEntity(f.Selections)
			c.reads = true // needed in any case, to know whether the entity exists
		case "changes":
			field.change = &changePlan{}
			err = p.planChange(field.change, f.Selections)
			c.reads = c.reads || field.change.reads
		case "commit":
			field.commit, err = p.planCommit(f.Selections)
		case "__typename", "snapshot", "position":
		default:
			return unplannedField(f)
		}
		c.fields = append(c.fields, field)
		return err
	})
}

func (c *entityEvent) write(t *eventWriter, e *operation.Event) ([]byte, error) {
	l, err := t.loaderFor(e, c.reads)
	if err != nil {
		return nil, err
	}
	b := []byte{'{'}
	for i := range c.fields {
		if i > 0 {
			b = append(b, ',')
		}
		f := &c.fields[i]
		if b, err = c.writeField(append(b, f.key...), f, l, e); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func (c *entityEvent) writeField(b []byte, f *entityEventField, l *loader, e *operation.Event) ([]byte, error) {
	switch f.name {
	case "entity":
		return l.appendEntity(b, f.entity, c.iri)
	case "changes":
		return l.appendChanges(b, f.change, e)
	case "commit":
		return appendCommit(b, l.engine, commitOf(e), f.commit), nil
	case "snapshot":
		return strconv.AppendBool(b, e.Snapshot), nil
	case "position":
		return appendPosition(b, l.engine.deps.Store, e.Position), nil
	}
	return append(b, `"EntityChange"`...), nil
}

// appendEntity writes an entity, null if the view shows nothing of it.
func (l *loader) appendEntity(b []byte, plan *entityPlan, iri kg.Term) ([]byte, error) {
	node, err := l.loadEntity(plan, iri)
	if node == nil || err != nil {
		return append(b, "null"...), err
	}
	return node.write(b), nil
}

// appendChanges writes the changes of an event as a list.
func (l *loader) appendChanges(b []byte, plan *changePlan, e *operation.Event) ([]byte, error) {
	each := make([]operation.Event, len(e.Changes))
	for i := range each {
		each[i] = operation.Event{Changes: e.Changes[i : i+1], Position: e.Changes[i].Position}
	}
	nodes, err := l.loadChanges(plan, each)
	if err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i := range nodes {
		if i > 0 {
			b = append(b, ',')
		}
		from := len(b)
		b = nodes[i].write(b, l.engine)
		if err := l.run.chargeBytes(len(b) - from); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// commitOf returns the commit of an event, nil in a snapshot.
func commitOf(e *operation.Event) *kg.Commit {
	if len(e.Changes) == 0 {
		return nil
	}
	return e.Changes[0].Commit
}
