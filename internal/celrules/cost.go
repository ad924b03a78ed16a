package celrules

import (
	"math"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"koine/internal/pacedregexp"
	"koine/kg"
)

// CEL counts the cost of a call when it returns, and checks the deadline in loops only.
// Calls that may take long by themselves charge the budget while they run.

const (
	// bytesPerStep is the amount of text that counts as one more step.
	bytesPerStep = 1 << 10
	// MaxPatternInstructions limits a regular expression of a rule.
	MaxPatternInstructions = 10_000
	// MaxPatternBytes limits a regular expression that a rule takes from data. It is
	// compiled for each evaluation.
	MaxPatternBytes = 256
	// instructionsCompiledPerStep is the number of instructions of such an expression
	// that are compiled for one step.
	instructionsCompiledPerStep = 8
)

// budgetVariable is the variable that holds the budget of an evaluation. No expression
// can contain this name.
const budgetVariable = "#budget"

// chargeCalls replaces calls whose time depends on their arguments by calls that charge the
// budget while they run (interpreter.InterpretableDecoratorV2).
func chargeCalls(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	switch call.Function() {
	case overloads.Matches:
		c := &pricedCall{InterpretableCall: call, apply: matchDynamic}
		if pattern, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
			source, ok := pattern.Value().(types.String)
			if !ok {
				return i, nil
			}
			re, err := pacedregexp.Compile(string(source), MaxPatternInstructions)
			if err != nil {
				return nil, kg.Errorf(kg.CodeInvalid, "the pattern %q: %w", string(source), err)
			}
			c.apply = func(b *budget, text, _ ref.Val) ref.Val { return matchText(b, re, text) }
		}
		return c, nil
	case operators.Equals:
		return &pricedCall{call, equalValues}, nil
	case operators.NotEquals:
		return &pricedCall{call, func(b *budget, lhs, rhs ref.Val) ref.Val {
			v := equalValues(b, lhs, rhs)
			if same, ok := v.(types.Bool); ok {
				return !same
			}
			return v
		}}, nil
	case operators.In:
		return &pricedCall{call, isMember}, nil
	}
	return i, nil
}

// pricedCall is a call with two arguments that charges while it runs.
type pricedCall struct {
	interpreter.InterpretableCall
	apply func(b *budget, lhs, rhs ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := c.Args()
	lhs := args[0].Exec(frame)
	if types.IsUnknownOrError(lhs) {
		return lhs
	}
	rhs := args[1].Exec(frame)
	if types.IsUnknownOrError(rhs) {
		return rhs
	}
	v, _ := frame.ResolveName(budgetVariable)
	b, ok := v.(*budget)
	if !ok {
		return types.NewErr("internal: an evaluation without a budget")
	}
	return types.LabelErrNode(c.ID(), c.apply(b, lhs, rhs))
}

// Eval implements interpreter.Interpretable.
func (c *pricedCall) Eval(activation interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(activation))
}

// matchDynamic matches a text with a pattern that is not constant.
func matchDynamic(b *budget, text, pattern ref.Val) ref.Val {
	source, ok := pattern.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pattern)
	}
	if len(source) > MaxPatternBytes {
		return types.WrapErr(kg.Errorf(kg.CodeInvalid, "a pattern that is not constant may have at most %d bytes, not %d", MaxPatternBytes, len(source)))
	}
	re, err := pacedregexp.Compile(string(source), MaxPatternInstructions)
	if err != nil {
		return types.WrapErr(kg.Errorf(kg.CodeInvalid, "%w", err))
	}
	if err := b.chargeEvaluation(re.Instructions() / instructionsCompiledPerStep); err != nil {
		return types.WrapErr(err)
	}
	return matchText(b, re, text)
}

func matchText(b *budget, re *pacedregexp.Regexp, text ref.Val) ref.Val {
	s, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	found, err := re.Match(string(s), b.chargeEvaluation)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(found)
}

// equalValues is types.Equal, charged for each compared pair of values.
func equalValues(b *budget, lhs, rhs ref.Val) ref.Val {
	switch l := lhs.(type) {
	case traits.Lister:
		if r, ok := rhs.(traits.Lister); ok {
			return equalLists(b, l, r)
		}
	case traits.Mapper:
		if r, ok := rhs.(traits.Mapper); ok {
			return equalMaps(b, l, r)
		}
	}
	if err := b.chargeEvaluation(min(textSize(lhs), textSize(rhs)) / bytesPerStep); err != nil {
		return types.WrapErr(err)
	}
	return types.Equal(lhs, rhs)
}

func equalLists(b *budget, l, r traits.Lister) ref.Val {
	size, ok := l.Size().(types.Int)
	if !ok || size != r.Size() {
		return types.Bool(false)
	}
	for i := range size {
		if v := equalItems(b, l.Get(i), r.Get(i)); v != types.True {
			return v
		}
	}
	return types.True
}

func equalMaps(b *budget, l, r traits.Mapper) ref.Val {
	lSize, rSize := l.Size(), r.Size()
	for _, size := range []ref.Val{lSize, rSize} {
		if types.IsError(size) {
			return size
		}
	}
	if lSize != rSize {
		return types.False
	}
	for it := l.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		lItem, _ := l.Find(key)
		rItem, found := r.Find(key)
		if !found {
			return types.False
		}
		if v := equalItems(b, lItem, rItem); v != types.True {
			return v
		}
	}
	return types.True
}

// equalItems compares two members for one more step. Members that cannot be compared
// count as equal, as in CEL.
func equalItems(b *budget, lhs, rhs ref.Val) ref.Val {
	if err := b.chargeEvaluation(1); err != nil {
		return types.WrapErr(err)
	}
	v := equalValues(b, lhs, rhs)
	if b.ended != nil || v == types.False {
		return v
	}
	return types.True
}

// isMember reports whether a list has a value, or a map a key.
func isMember(b *budget, value, container ref.Val) ref.Val {
	list, ok := container.(traits.Lister)
	if !ok {
		if c, ok := container.(traits.Container); ok {
			return c.Contains(value)
		}
		return types.MaybeNoSuchOverloadErr(container)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if v := equalValues(b, value, it.Next()); v == types.True || b.ended != nil {
			return v
		}
	}
	return types.False
}

// textSize is the number of bytes of a text; 0 for values that compare in constant
// time.
func textSize(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// estimator sets the cost of calls in which CEL traverses a text without counting it
// (interpreter.ActualCostEstimator).
type estimator struct{}

// textCostFactor is the cost of each character of a text in CEL's model
// (common.StringTraversalCostFactor).
const textCostFactor = 0.1

// CallCost implements interpreter.ActualCostEstimator.
func (estimator) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	n := uint64(1)
	switch function {
	case overloads.Matches: // charged for as it ran
	case overloads.Size, overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble, overloads.TypeConvertBool,
		overloads.TypeConvertString, overloads.TypeConvertBytes, overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		n += uint64(math.Ceil(float64(textSize(args[0])) * textCostFactor))
	default:
		return nil
	}
	return &n
}
