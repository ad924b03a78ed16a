package graph

import (
	"bytes"
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

// Channels, messages and tasks are written by the generated code, entities and
// statements by the engine. Each can contain the other.

// insideFields are the fields of generated objects that the engine answers.
var insideFields = map[string]bool{"Channel.entity": true, "Message.entity": true, "Message.facts": true, "Scope.entity": true, "Task.entity": true, "Artifact.entity": true, "TaskCommit.facts": true}

// engineAnswers reports whether the engine writes the field.
func engineAnswers(fc *graphql.FieldContext) bool {
	switch fc.Object {
	case "Query":
		return true
	case "Channel", "Message", "Scope", "Task", "Artifact", "TaskCommit":
		return insideFields[fc.Object+"."+fc.Field.Name]
	}
	return false
}

// readInside begins to read a field inside of an object that the generated
// code writes. A budget does not cut such a field.
func readInside(ctx context.Context) (reading, error) {
	fc := graphql.GetFieldContext(ctx)
	v, err := runOf(ctx).fieldView(nil)
	return reading{newPlanner(ctx, v), fc.Field, fc.Args}, err
}

// readOwnEntity answers a field that shows the entity of a koine object. Its
// system graph is included unless the request's view names graphs.
func readOwnEntity(ctx context.Context, entity kg.Term) error {
	r, err := readInside(ctx)
	if err != nil {
		return err
	}
	if r.view.Graphs == nil {
		r.view.AllGraphs = true
	}
	return r.showEntity(entity)
}

// insidePlan is a selection on an object that the generated code writes inside
// of an answer of the engine. The generated code reads it from the operation.
type insidePlan struct {
	op  *graphql.OperationContext
	set ast.SelectionSet
}

func (p *planner) planGenerated(f graphql.CollectedField) *insidePlan {
	return &insidePlan{op: p.op, set: f.Selections}
}

// writeGenerated lets the generated code write an object. A failed field becomes null
// and its error one of the answer's. The whole answer fails instead under a
// budget, in an event, or if the field is non-null.
func (l *loader) writeGenerated(plan *insidePlan, object func(context.Context, *executionContext) graphql.Marshaler) ([]byte, error) {
	r := l.run
	whole, _ := l.ctx.Value(answerKey{}).(*answer)
	if c := r.cutter; c != nil { // see readInside
		whole = nil
		r.cutter = nil
		defer func() { r.cutter = c }()
	}
	ec := r.ec
	if ec == nil { // an event has a run of its own
		ec = newExecutionContext(plan.op, r.engine.schema, nil)
	}
	ctx := graphql.WithOperationContext(context.WithValue(l.ctx, runKey{}, r), plan.op)
	ctx = graphql.WithResponseContext(ctx, r.engine.presentError, r.engine.recoverPanic)
	var b bytes.Buffer
	object(ctx, ec).MarshalGQL(&b)
	errs := graphql.GetErrors(ctx)
	switch {
	case len(errs) == 0:
		return b.Bytes(), nil
	case whole == nil || b.Len() == 0 || b.Bytes()[0] != '{' || len(whole.failures.errors) == maxFailures:
		return nil, errs[0]
	}
	from := len(graphql.GetPath(l.ctx))
	for i, err := range errs {
		e := *err
		e.Path = e.Path[min(from, len(e.Path)):]
		errs[i] = &e
	}
	return whole.failures.markObject(b.Bytes(), errs), nil
}

func (l *loader) appendChannel(b []byte, plan *insidePlan, c *Channel) ([]byte, error) {
	text, err := l.writeGenerated(plan, func(ctx context.Context, ec *executionContext) graphql.Marshaler {
		return ec._Channel(ctx, plan.set, c)
	})
	return append(b, text...), err
}

func (l *loader) appendTask(b []byte, plan *insidePlan, t *Task) ([]byte, error) {
	text, err := l.writeGenerated(plan, func(ctx context.Context, ec *executionContext) graphql.Marshaler {
		return ec._Task(ctx, plan.set, t)
	})
	return append(b, text...), err
}

func (l *loader) appendMessage(b []byte, plan *insidePlan, m *Message) ([]byte, error) {
	text, err := l.writeGenerated(plan, func(ctx context.Context, ec *executionContext) graphql.Marshaler {
		return ec._Message(ctx, plan.set, m)
	})
	return append(b, text...), err
}
