package shapes

import (
	"context"
	"time"

	"koine/kg"
)

// Budget bounds what one judgement or report may cost. The zero Budget is the
// default one.
type Budget struct {
	// Steps counts statements read and values tested.
	Steps int
	// Time is that of the judgement on one side; the committer's own judgement,
	// where there is one, has the same again.
	Time time.Duration
}

// Defaults of Budget.
const (
	DefaultSteps = 1_000_000
	DefaultTime  = 5 * time.Second
)

func (b Budget) withDefaults() Budget {
	if b.Steps == 0 {
		b.Steps = DefaultSteps
	}
	if b.Time == 0 {
		b.Time = DefaultTime
	}
	return b
}

// meter is a budget while it is spent.
type meter struct {
	ctx   context.Context
	left  int
	until time.Time
	limit Budget
	spent int
}

func newMeter(ctx context.Context, b Budget) *meter {
	b = b.withDefaults()
	return &meter{ctx: ctx, left: b.Steps, until: time.Now().Add(b.Time), limit: b}
}

// lookEvery is after how many steps the clock is asked.
const lookEvery = 256

func (m *meter) spend(steps int) error {
	m.left -= steps
	if m.left < 0 {
		e := kg.Errorf(kg.CodeJudgeLimit, "judging by the shapes would take more than %d steps", m.limit.Steps)
		e.Limit, e.Hint = "shapes.steps", "Change less at a time, or ask an administrator for simpler shapes."
		return e
	}
	before := m.spent / lookEvery
	m.spent += steps
	if m.spent != steps && m.spent/lookEvery == before {
		return nil
	}
	if err := m.ctx.Err(); err != nil {
		return kg.Errorf(kg.CodeTimeout, "judging by the shapes was given up: %w", err)
	}
	if time.Now().After(m.until) {
		e := kg.Errorf(kg.CodeJudgeLimit, "judging by the shapes would take longer than %s", m.limit.Time)
		e.Limit, e.Hint = "shapes.time", "Change less at a time, or ask an administrator for simpler shapes."
		return e
	}
	return nil
}
