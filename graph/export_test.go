package graph

import (
	"iter"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/knowledge"
	"koine/internal/operation"
	"koine/internal/tasks"
	"koine/kg"
)

// Bounds of what streams share.
const (
	MaxSharedDocument = maxSharedDocument
	MaxSharedPlan     = knowledge.MaxSharedPlan
	MaxSharedMessage  = maxSharedMessage
)

// OwnFields has the fields with which events are shared.
var OwnFields = ownFields

// KeptWith returns what is kept with a cached document, by the names of its fields.
func (e *Engine) KeptWith(query string) map[string]any {
	doc, _, errs := e.schema.Load().documents.DocumentOf(&operation.Request{Query: query})
	if len(errs) > 0 {
		panic(errs)
	}
	kept := map[string]any{}
	doc.Derived.Range(func(field, value any) bool {
		kept[field.(*ast.Field).Alias] = value
		return true
	})
	return kept
}

// TaskEvents yields the events of a subscription to a task.
func TaskEvents(store *kg.Store, first *tasks.Task, st *tasks.Stream) iter.Seq2[operation.Event, error] {
	return (&taskSource{ownSource: ownSource{store}, first: first, stream: st}).Events()
}
