package celrules

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"koine/kg"
)

// budget is the remaining cost and time of one judgement.
type budget struct {
	ctx    context.Context
	cancel context.CancelFunc
	cost   uint64 // left for the judgement

	perRule   uint64
	rule      uint64 // left for the current evaluation, apart from CEL's own count
	ended     error  // reason for which the judgement must end
	unchecked uint64 // steps paid since the last check of clock and context
	yielded   time.Time
}

const (
	// checkEvery is the number of steps between checks of the clock and the context. A
	// step takes a microsecond, or some hundreds if it reads a statement from disk.
	checkEvery = 32
	// yieldEvery is how long a judgement keeps its processor.
	yieldEvery = time.Millisecond
)

func (s *Set) newBudget(ctx context.Context) *budget {
	b := &budget{cost: s.options.JudgementCost, perRule: s.options.RuleCost, yielded: time.Now()}
	b.ctx, b.cancel = context.WithTimeoutCause(ctx, s.options.JudgementTime, errLimit("time"))
	return b
}

func errLimit(what string) *kg.Error {
	e := kg.Errorf(kg.CodeJudgeLimit, "judging the request by the operator's rules exceeds the limit of %s", what)
	e.Hint = "Split the request."
	return e
}

// chargeEvaluation takes steps of the current evaluation that CEL does not count itself. An error
// ends the judgement, whatever the rule does with it.
func (b *budget) chargeEvaluation(steps int) error {
	n := uint64(steps)
	if b.ended == nil && n > b.rule {
		b.ended = errLimit("steps")
	}
	b.rule -= min(n, b.rule)
	return b.chargeSteps(n)
}

// chargeRead takes the steps of reading a value of this size. They are not charged to one
// evaluation, because rules share the values read.
func (b *budget) chargeRead(bytes int) error {
	return b.chargeSteps(uint64(1 + bytes/bytesPerStep))
}

// chargeSteps takes steps of the judgement. At intervals it checks the clock and the context,
// and yields the processor.
func (b *budget) chargeSteps(n uint64) error {
	if b.ended == nil && n > b.cost {
		b.ended = errLimit("steps")
	}
	if b.ended != nil {
		return b.ended
	}
	b.cost -= n
	if b.unchecked += n; b.unchecked < checkEvery {
		return nil
	}
	b.unchecked = 0
	if b.ctx.Err() != nil {
		b.ended = context.Cause(b.ctx)
		return b.ended
	}
	if now := time.Now(); now.Sub(b.yielded) > yieldEvery {
		runtime.Gosched()
		b.yielded = now
	}
	return nil
}

// evaluate evaluates a rule. A rule that cannot be evaluated holds, and failed is the
// reason. err ends the judgement.
func (b *budget) evaluate(r *Rule, vars map[string]any) (holds bool, failed, err error) {
	if b.ctx.Err() != nil {
		return false, nil, context.Cause(b.ctx)
	}
	b.rule = b.perRule
	vars[budgetVariable] = b
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
	case b.ended != nil:
		return false, nil, b.ended
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
