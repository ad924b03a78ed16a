package limit

import (
	"encoding/json"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels"
	"koine/graph/internal/scalar"
	"koine/internal/query/path"
)

// CheckCost bounds the cost of an answer before anything is read. Each field
// has the weight given in weights.go, and the fields inside of a list
// count once for each requested element.
// A budget that ends a query's pages ends their cost as well.
func (l Limits) CheckCost(op *ast.OperationDefinition, variables map[string]any, budget *Allowance) error {
	c := &costEstimator{limits: l, variables: variables, fragments: map[string]cost{}}
	whole := c.setCost(op.SelectionSet).total()
	if whole > l.Complexity && op.Operation == ast.Query && budget != nil {
		whole = c.cutSet(op.SelectionSet, *budget)
	}
	if whole > l.Complexity {
		return Exceeded("complexity", "the operation could cost %s; at most %d is allowed", formatCost(whole), l.Complexity).
			WithHint("Request smaller pages (first), especially in inner lists, select fewer fields, or pass a budget.")
	}
	return nil
}

func formatCost(n int) string {
	if n >= tooMuch {
		return "very many"
	}
	return strconv.Itoa(n)
}

// cost is the cost of a selection set. In a connection, each is paid for every
// element of the page and once for the rest.
type cost struct{ once, each int }

func (c cost) total() int { return min(c.once+c.each, tooMuch) }

// costEstimator walks a valid document: its fragments exist and have no cycle.
type costEstimator struct {
	limits    Limits
	variables map[string]any
	fragments map[string]cost
	single    bool // each page of a connection counts one element
}

func (c *costEstimator) setCost(set ast.SelectionSet) (sum cost) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if n := c.fieldCost(sel); isElements(sel) {
				sum.each += n
			} else {
				sum.once += n
			}
		case *ast.InlineFragment:
			sum = sum.add(c.setCost(sel.SelectionSet))
		case *ast.FragmentSpread:
			n, ok := c.fragments[sel.Name]
			if !ok {
				n = c.setCost(sel.Definition.SelectionSet)
				c.fragments[sel.Name] = n
			}
			sum = sum.add(n)
		}
		sum = cost{min(sum.once, tooMuch), min(sum.each, tooMuch)}
	}
	return sum
}

func (c cost) add(d cost) cost { return cost{c.once + d.once, c.each + d.each} }

// isElements reports whether a field lists the elements of a page.
func isElements(f *ast.Field) bool {
	return (f.Name == "nodes" || f.Name == "edges" || f.Name == "events") && f.ObjectDefinition != nil && isConnection(f.ObjectDefinition.Name)
}

func (c *costEstimator) fieldCost(f *ast.Field) int {
	inner := c.setCost(f.SelectionSet)
	connection := f.Definition != nil && isConnection(f.Definition.Type.Name())
	if connection || f.Definition != nil && f.Definition.Arguments.ForName("first") != nil {
		n := min(c.pageSize(f), tooMuch) // no product is more than 2^60
		if connection && c.single {
			n = 1
		}
		inner.each *= n
		if !connection {
			inner.once *= n
		}
	}
	total := inner.total()
	switch f.Name {
	case "neighborhood":
		total *= c.neighbourCount(f)
	case "responses":
		total *= channels.MaxAnswers
	case "messageCounts":
		total *= channels.MaxCounts
	case "shortestPaths":
		total *= c.intArgument(f, "k", 1, path.MaxRoutes) * c.intArgument(f, "maxDepth", 6, path.MaxRouteLength)
	}
	return min(c.fieldWeight(f)+total, tooMuch)
}

// cutSet is the cost of the root fields under budgets.
func (c *costEstimator) cutSet(set ast.SelectionSet, whole Allowance) (sum int) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			sum += c.cutField(sel, whole)
		case *ast.InlineFragment:
			sum += c.cutSet(sel.SelectionSet, whole)
		case *ast.FragmentSpread:
			sum += c.cutSet(sel.Definition.SelectionSet, whole)
		}
		sum = min(sum, tooMuch)
	}
	return sum
}

// cutField estimates the cost of a root field under a budget that ends its
// pages. The first element of each page always counts. Every further element
// takes bytes of the answer, which count 1 each (a field takes several), and
// at least one statement, for which it costs no more than the first.
func (c *costEstimator) cutField(f *ast.Field, whole Allowance) int {
	full := c.fieldCost(f)
	a := whole
	if arg := f.Arguments.ForName("budget"); arg != nil {
		if v, err := arg.Value.Value(c.variables); err == nil && v != nil {
			if b, err := readBudget("budget", v); err == nil { // otherwise the planner refuses it
				a = a.NarrowBy(b)
			}
		}
	}
	one := &costEstimator{limits: c.limits, variables: c.variables, fragments: map[string]cost{}, single: true}
	least := one.fieldCost(f)
	full = min(full, least+min(a.Bytes, tooMuch))
	if a.Reads < tooMuch {
		full = min(full, least*max(1, int(a.Reads)))
	}
	return full
}

// neighbourCount is the number of statements of a neighborhood that a field asks
// for.
func (c *costEstimator) neighbourCount(f *ast.Field) int {
	if arg := f.Arguments.ForName("budget"); arg != nil {
		v, _ := arg.Value.Value(c.variables)
		budget, _ := v.(map[string]any)
		if text, ok := scalar.DigitText(budget["maxStatements"]); ok {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				return min(n, MaxNeighborhood)
			}
		}
	}
	return DefaultNeighborhood
}

// pageSize is the page size that a field asks for. A value out of bounds counts
// as the greatest: it is refused later, with a better message.
func (c *costEstimator) pageSize(f *ast.Field) int {
	unasked := DefaultPageSize
	if f.ObjectDefinition != nil && (f.ObjectDefinition.Name == "Vocabulary" || shortLists[f.Name]) {
		unasked = DefaultListSize
	}
	if len(f.SelectionSet) == 0 {
		return 1 // a list of scalars has no fields of its own
	}
	if f.Arguments.ForName("last") != nil {
		return c.intArgument(f, "last", min(unasked, c.limits.PageSize), c.limits.PageSize)
	}
	return c.intArgument(f, "first", min(unasked, c.limits.PageSize), c.limits.PageSize)
}

// intArgument is the value of an argument, or unasked without one. A value out of
// bounds counts as most.
func (c *costEstimator) intArgument(f *ast.Field, name string, unasked, most int) int {
	arg := f.Arguments.ForName(name)
	if arg == nil {
		return unasked
	}
	v, err := arg.Value.Value(c.variables)
	if err != nil || v == nil {
		return unasked
	}
	n := int64(most)
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
	if err != nil || n < 0 || n > int64(most) {
		n = int64(most)
	}
	return max(1, int(n))
}
