package rules

import (
	"context"
	"errors"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"koine/kg"
)

// budget is what is left of the cost and time of one judgement.
type budget struct {
	ctx    context.Context
	cancel context.CancelFunc
	cost   uint64
}

func (s *Set) budget(ctx context.Context) *budget {
	b := &budget{cost: s.options.JudgementCost}
	b.ctx, b.cancel = context.WithTimeoutCause(ctx, s.options.JudgementTime, errLimit("time"))
	return b
}

func errLimit(what string) *kg.Error {
	e := kg.Errorf(kg.CodeJudgeLimit, "the operator's rules take more %s for this than they may", what)
	e.Hint = "Ask for less at a time."
	return e
}

// holds evaluates a rule. A rule that cannot be evaluated holds: failed then says
// why. err ends the judgement.
func (b *budget) holds(r *Rule, vars map[string]any) (holds bool, failed, err error) {
	if b.ctx.Err() != nil {
		return false, nil, context.Cause(b.ctx)
	}
	out, details, err := r.program.ContextEval(b.ctx, vars)
	if cost := details.ActualCost(); cost != nil {
		if *cost > b.cost {
			return false, nil, errLimit("steps")
		}
		b.cost -= *cost
	}
	var ended interpreter.EvalCancelledError
	switch {
	case b.ctx.Err() != nil:
		return false, nil, context.Cause(b.ctx)
	case errors.As(err, &ended):
		return false, nil, errLimit("steps")
	case err != nil:
		var own *kg.Error
		if errors.As(err, &own) && own.Code != kg.CodeInvalid {
			return false, nil, err // the graph could not be read
		}
		return true, err, nil
	}
	if yes, ok := out.(types.Bool); ok {
		return bool(yes), nil, nil
	}
	return true, errors.New("the condition is neither true nor false"), nil
}
