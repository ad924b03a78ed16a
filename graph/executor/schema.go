package executor

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Schema is the input of an executor: a GraphQL schema and the table of each
// object type. It does not change once it is in use. A server that changes its
// types takes another Schema.
type Schema struct {
	AST                           *ast.Schema
	Query, Mutation, Subscription *Object
}

// Root returns the table of a kind of operation, nil for an unknown one.
func (s *Schema) Root(kind ast.Operation) *Object {
	switch kind {
	case ast.Query:
		return s.Query
	case ast.Mutation:
		return s.Mutation
	case ast.Subscription:
		return s.Subscription
	}
	return nil
}

// Object is the table of an object type.
type Object struct {
	Name string
	// Implementors are the type conditions that the type satisfies: its own
	// name, and those of its interfaces and unions.
	Implementors []string
	Fields       map[string]*Field
}

// Field is the entry of a field in its object's table. It has Write, or
// Subscribe if the object is the root of subscriptions.
type Field struct {
	// Args coerces the field's arguments; nil for a field without arguments.
	// It runs once for each selected field of an operation.
	Args func(c *Coercer, raw map[string]any) (any, error)
	// Write resolves the field of an object and writes its value. If it
	// returns an error, its text is dropped.
	Write func(w *Writer, s *Selected, of any) error
	// Subscribe establishes the field's stream of events.
	Subscribe func(ctx context.Context, s *Selected) (any, error)
}

// Value is a value that writes itself: one that was planned and loaded as a
// whole. A nil Value is null.
type Value interface {
	Write(w *Writer) error
}

// Operation is shared by the selections of one operation.
type Operation struct {
	Context *graphql.OperationContext
	Coercer Coercer
}

// Selection is a selection set on one object type, with its fragments merged.
type Selection struct {
	Object *Object
	Fields []Selected
}

// Selected is a selected field. It belongs to one operation, and is used by
// one goroutine at a time.
type Selected struct {
	graphql.CollectedField
	// Args are the coerced arguments in the form of the field's Args.
	Args any
	// Plan is for the field's function, which may keep what it derives from
	// the selection. The function then does so once for all objects.
	Plan any

	op      *Operation
	field   *Field
	key     []byte // `"alias":`
	argsErr error
	// The selection for the object type asked for last, and all others.
	last  *Selection
	inner map[*Object]*Selection
}

// Root merges the selection set of the operation for its root. refused has the
// errors of fields that are not to be resolved, by response name.
func (op *Operation) Root(object *Object, refused map[string]error) *Selection {
	return op.selectOn(object, op.Context.Operation.SelectionSet, refused)
}

// Select merges a selection set for an object type.
func (op *Operation) Select(object *Object, set ast.SelectionSet) *Selection {
	return op.selectOn(object, set, nil)
}

func (op *Operation) selectOn(object *Object, set ast.SelectionSet, refused map[string]error) *Selection {
	collected := CollectFields(op.Context, set, object.Implementors)
	out := &Selection{Object: object, Fields: make([]Selected, len(collected))}
	for i, f := range collected {
		s := &out.Fields[i]
		s.CollectedField, s.op, s.key = f, op, Key(f.Alias)
		if f.Name == "__typename" {
			continue
		}
		s.field = object.Fields[f.Name]
		if s.argsErr = refused[f.Alias]; s.argsErr == nil && s.field != nil && s.field.Args != nil {
			s.Args, s.argsErr = s.field.Args(&op.Coercer, f.ArgumentMap(op.Context.Variables))
		}
	}
	return out
}

// CollectFields merges a selection set for the object types that satisfy the type
// conditions. It is gqlgen's, which keeps a __typename for each type condition
// around it.
func CollectFields(op *graphql.OperationContext, set ast.SelectionSet, implementors []string) []graphql.CollectedField {
	fields := graphql.CollectFields(op, set, implementors)
	shared := true // with gqlgen's cache
	for i := 1; i < len(fields); i++ {
		if f := fields[i]; f.Name == "__typename" && slices.ContainsFunc(fields[:i], func(g graphql.CollectedField) bool { return g.Alias == f.Alias }) {
			if shared {
				fields, shared = slices.Clone(fields), false
			}
			fields = slices.Delete(fields, i, i+1)
			i--
		}
	}
	return fields
}

// Key returns a response name as the key of a JSON object.
func Key(alias string) []byte {
	b := make([]byte, 0, len(alias)+3)
	return append(append(append(b, '"'), alias...), '"', ':')
}

// On returns the selection of the field's value if it is of an object type.
func (s *Selected) On(object *Object) *Selection {
	if s.last != nil && s.last.Object == object {
		return s.last
	}
	inner := s.inner[object]
	if inner == nil {
		inner = s.op.Select(object, s.Selections)
		if s.last != nil { // another type: most fields have one
			if s.inner == nil {
				s.inner = map[*Object]*Selection{s.last.Object: s.last}
			}
			s.inner[object] = inner
		}
	}
	s.last = inner
	return inner
}

// Operation returns the operation of the field.
func (s *Selected) Operation() *Operation { return s.op }

// Subscribe establishes the stream of a subscription's root field.
func (s *Selected) Subscribe(ctx context.Context) (any, error) {
	if s.argsErr != nil {
		return nil, s.argsErr
	}
	return s.field.Subscribe(ctx, s)
}

// Field returns a field of the operation whose value is written by tables, but
// which itself is planned by its parent.
func (op *Operation) Field(f graphql.CollectedField) *Selected {
	return &Selected{CollectedField: f, op: op, key: Key(f.Alias)}
}
