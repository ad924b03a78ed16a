package shapes

import (
	"context"
	"runtime"
	"time"

	"koine/kg"
)

// Budget bounds what one judgement or report may cost. The zero Budget is the
// default one.
type Budget struct {
	// Steps counts statements read and values tested: one for each, one more for
	// each KiB of text in it, and one for each 256 instructions that a regular
	// expression may execute on it.
	Steps int
	// Time is that of one judgement. An update that is judged again has the same
	// again.
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
	ctx     context.Context
	left    int
	until   time.Time
	yielded time.Time
	limit   Budget
	spent   int
}

func newMeter(ctx context.Context, b Budget) *meter {
	b = b.withDefaults()
	now := time.Now()
	return &meter{ctx: ctx, left: b.Steps, until: now.Add(b.Time), yielded: now, limit: b}
}

const (
	// lookEvery is after how many steps the clock and the context are asked. A step
	// takes a microsecond, and some hundreds where its statement is on a disk.
	lookEvery = 32
	// yieldEvery is how long a judgement keeps its processor.
	yieldEvery = time.Millisecond
	// bytesPerStep is how much text of a value counts as one step more.
	bytesPerStep = 1 << 10
)

// cost is the number of steps that reading or testing a value takes.
func cost(t kg.Term) int { return 1 + (len(t.Value())+len(t.Datatype()))/bytesPerStep }

func costOf(list []kg.Term) (n int) {
	for _, t := range list {
		n += cost(t)
	}
	return n
}

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
	return m.look()
}

// look ends a judgement that nobody waits for any more, or that takes too long, and
// lets others run: light requests stay light beside it.
func (m *meter) look() error {
	if err := m.ctx.Err(); err != nil {
		return kg.Errorf(kg.CodeTimeout, "judging by the shapes was given up: %w", err)
	}
	now := time.Now()
	if now.Sub(m.yielded) > yieldEvery {
		runtime.Gosched()
		m.yielded = now
	}
	if now.After(m.until) {
		e := kg.Errorf(kg.CodeJudgeLimit, "judging by the shapes would take longer than %s", m.limit.Time)
		e.Limit, e.Hint = "shapes.time", "Change less at a time, or ask an administrator for simpler shapes."
		return e
	}
	return nil
}
