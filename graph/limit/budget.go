package limit

import (
	"math"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/kg"
)

// BytesPerToken converts a budget of tokens to one of bytes: JSON has about so
// many bytes for each token of a language model.
const BytesPerToken = 3

// BudgetInput bounds the size of an answer. An absent member does not bound it.
type BudgetInput struct {
	// Bytes of JSON.
	MaxBytes *int
	// Tokens of a language model, estimated as one for every three bytes of JSON, rounded up.
	MaxTokens *int
	// Statements read for the answer.
	MaxStatements *int
}

// Allowance bounds a part of the answer.
type Allowance struct {
	Bytes  int   // of JSON
	Tokens bool  // the bound was given in tokens
	Reads  int64 // statements read
}

// DefaultAllowance is the allowance of an operation without a budget. ResultBytes
// bounds every answer, and an operation with any budget is cut there as well.
func (l Limits) DefaultAllowance() Allowance {
	return Allowance{Bytes: l.ResultBytes, Reads: math.MaxInt64}
}

// CutReason returns the cut reason of an answer that reaches the byte bound.
func (a Allowance) CutReason() operation.CutReason {
	if a.Tokens {
		return operation.CutTokens
	}
	return operation.CutBytes
}

// NarrowBy returns the smaller of each bound. A zero in the budget is no bound.
func (a Allowance) NarrowBy(b operation.Budget) Allowance {
	if b.MaxBytes > 0 && b.MaxBytes < a.Bytes {
		a.Bytes, a.Tokens = b.MaxBytes, false
	}
	if b.MaxTokens > 0 && b.MaxTokens < a.Bytes/BytesPerToken {
		a.Bytes, a.Tokens = b.MaxTokens*BytesPerToken, true
	}
	if b.MaxStatements > 0 && int64(b.MaxStatements) < a.Reads {
		a.Reads = int64(b.MaxStatements)
	}
	return a
}

// BudgetOf validates a budget input. nil gives a budget without bounds.
func BudgetOf(in *BudgetInput) (b operation.Budget, err error) {
	if in == nil {
		return b, nil
	}
	for _, m := range []struct {
		name string
		from *int
		to   *int
	}{{"maxBytes", in.MaxBytes, &b.MaxBytes}, {"maxTokens", in.MaxTokens, &b.MaxTokens}, {"maxStatements", in.MaxStatements, &b.MaxStatements}} {
		if m.from == nil {
			continue
		}
		if *m.from < 1 {
			return b, kg.Errorf(kg.CodeInvalid, "%s of a budget must be at least 1, not %d", m.name, *m.from).At("budget." + m.name)
		}
		*m.to = *m.from
	}
	return b, nil
}

// ReadBudgets collects the bounds of the whole operation: the request's budget,
// its extension `budget`, and the document's directive @budget. budgeted is false
// if neither the operation nor one of its fields has a budget.
func (l Limits) ReadBudgets(req *operation.Request, op *ast.OperationDefinition, variables map[string]any) (a Allowance, budgeted bool, err error) {
	a = l.DefaultAllowance().NarrowBy(req.Budget)
	said, ok := req.Extensions["budget"]
	if ok && said != nil {
		b, err := readBudget("extensions.budget", said)
		if err != nil {
			return a, false, err
		}
		a = a.NarrowBy(b)
	}
	if d := op.Directives.ForName("budget"); d != nil {
		b, err := readBudget("@budget", d.ArgumentMap(variables))
		if err != nil {
			return a, false, err
		}
		a = a.NarrowBy(b)
	}
	return a, a != l.DefaultAllowance() || asksBudget(op.SelectionSet, map[string]bool{}), nil
}

// asksBudget reports whether a field has an argument `budget`.
func asksBudget(set ast.SelectionSet, seen map[string]bool) bool {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if sel.Arguments.ForName("budget") != nil || asksBudget(sel.SelectionSet, seen) {
				return true
			}
		case *ast.InlineFragment:
			if asksBudget(sel.SelectionSet, seen) {
				return true
			}
		case *ast.FragmentSpread:
			if !seen[sel.Name] {
				seen[sel.Name] = true
				if asksBudget(sel.Definition.SelectionSet, seen) {
					return true
				}
			}
		}
	}
	return false
}

// readBudget parses a budget given as JSON.
func readBudget(where string, value any) (operation.Budget, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return operation.Budget{}, kg.Errorf(kg.CodeInvalid, "budget must be an object with maxBytes, maxTokens or maxStatements").At(where)
	}
	var in BudgetInput
	for name, v := range members {
		to := map[string]**int{"maxBytes": &in.MaxBytes, "maxTokens": &in.MaxTokens, "maxStatements": &in.MaxStatements}[name]
		if to == nil {
			return operation.Budget{}, kg.Errorf(kg.CodeInvalid, "a budget has no %s: it has maxBytes, maxTokens and maxStatements", strconv.Quote(name)).At(where)
		}
		if v == nil {
			continue
		}
		n, err := graphql.UnmarshalInt(v)
		if _, text := v.(string); text || err != nil {
			return operation.Budget{}, kg.Errorf(kg.CodeInvalid, "%s of a budget must be a whole number", name).At(where + "." + name)
		}
		*to = &n
	}
	b, err := BudgetOf(&in)
	if err != nil {
		return b, kg.Errorf(kg.CodeInvalid, "%s", kg.AsError(err).Message).At(where)
	}
	return b, nil
}
