package graph

import (
	"encoding/json"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// checkCost bounds the fields that an answer may have, before anything is
// read: each field counts one, and what is inside of a list counts once for
// each element that was asked for.
func (l Limits) checkCost(doc *ast.QueryDocument, op *ast.OperationDefinition, variables map[string]any) error {
	c := &costing{limits: l, variables: variables, fragments: map[string]int{}}
	cost := c.set(op.SelectionSet)
	if cost > l.Complexity {
		return limitError("complexity", "the answer could have %s fields; at most %d are allowed", many(cost), l.Complexity).
			hint("Ask for smaller pages (first), above all in the inner lists, or for fewer fields.")
	}
	return nil
}

func many(n int) string {
	if n >= tooMuch {
		return "very many"
	}
	return strconv.Itoa(n)
}

// costing walks a valid document: its fragments exist and have no cycle.
type costing struct {
	limits    Limits
	variables map[string]any
	fragments map[string]int
}

func (c *costing) set(set ast.SelectionSet) (cost int) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			cost += c.field(sel)
		case *ast.InlineFragment:
			cost += c.set(sel.SelectionSet)
		case *ast.FragmentSpread:
			n, ok := c.fragments[sel.Name]
			if !ok {
				n = c.set(sel.Definition.SelectionSet)
				c.fragments[sel.Name] = n
			}
			cost += n
		}
		cost = min(cost, tooMuch)
	}
	return cost
}

func (c *costing) field(f *ast.Field) int {
	inner := c.set(f.SelectionSet)
	if f.Definition != nil && f.Definition.Arguments.ForName("first") != nil {
		inner = min(inner, tooMuch) * min(c.first(f), tooMuch) // no more than 2^60
	}
	return min(1+inner, tooMuch)
}

// first is the page size that a field asks for. What is out of bounds is
// refused later, with a better message: here it counts as the greatest.
func (c *costing) first(f *ast.Field) int {
	unasked := DefaultPageSize
	if len(f.SelectionSet) == 0 {
		return 1 // a list of values costs no fields of its own
	}
	arg := f.Arguments.ForName("first")
	if arg == nil {
		return unasked
	}
	v, err := arg.Value.Value(c.variables)
	if err != nil || v == nil {
		return unasked
	}
	n := int64(c.limits.PageSize)
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case json.Number:
		n, err = v.Int64()
	case float64:
		n = int64(v)
	}
	if err != nil || n < 0 || n > int64(c.limits.PageSize) {
		n = int64(c.limits.PageSize)
	}
	return max(1, int(n))
}
