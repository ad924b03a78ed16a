package graph

import (
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/knowledge"
	"koine/internal/operation"
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
