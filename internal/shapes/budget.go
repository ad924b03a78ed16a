package shapes

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"koine/kg"
)

// Budget bounds the cost of one validation or report. The zero Budget has the
// defaults.
type Budget struct {
	// Steps is the number of statements read and values tested. A value costs one
	// more step per KiB of text, and one per 256 instructions that a regular
	// expression may execute on it.
	Steps int
	// Time bounds one validation. A repeated validation of an update has the same
	// time again.
	Time time.Duration
}

// The defaults of Budget.
const (
	DefaultSteps = 1_000_000
	DefaultTime  = 5 * time.Second
)

// meter tracks the use of a budget.
type meter struct {
	ctx       context.Context
	remaining int
	until     time.Time
	yielded   time.Time
	limit     Budget
	spent     int
}

func newMeter(ctx context.Context, b Budget) *meter {
	b.Steps, b.Time = cmp.Or(b.Steps, DefaultSteps), cmp.Or(b.Time, DefaultTime)
	now := time.Now()
	return &meter{ctx: ctx, remaining: b.Steps, until: now.Add(b.Time), yielded: now, limit: b}
}

const (
	// lookEvery is the number of steps between two looks at the clock and the
	// context. A step takes a microsecond, or some hundreds if the statement is on
	// disk.
	lookEvery = 32
	// yieldEvery is the time after which a validation yields the processor.
	yieldEvery = time.Millisecond
	// bytesPerStep is the length of text that costs one more step.
	bytesPerStep = 1 << 10
)

// stepCost returns the number of steps for reading or testing a value.
func stepCost(t kg.Term) int { return 1 + (len(t.Value())+len(t.Datatype()))/bytesPerStep }

func costOf(list []kg.Term) (n int) {
	for _, t := range list {
		n += stepCost(t)
	}
	return n
}

func (m *meter) spendSteps(steps int) error {
	m.remaining -= steps
	if m.remaining < 0 {
		return errLimit("shapes.steps", "more than %d steps", m.limit.Steps)
	}
	before := m.spent / lookEvery
	m.spent += steps
	if m.spent != steps && m.spent/lookEvery == before {
		return nil
	}
	return m.checkDeadline()
}

// checkDeadline ends a validation if the context is done or the time is over. It also yields the
// processor, so that cheap requests are not delayed.
func (m *meter) checkDeadline() error {
	if err := m.ctx.Err(); err != nil {
		return kg.Errorf(kg.CodeTimeout, "validation by the shapes was cancelled: %w", err)
	}
	now := time.Now()
	if now.Sub(m.yielded) > yieldEvery {
		runtime.Gosched()
		m.yielded = now
	}
	if now.After(m.until) {
		return errLimit("shapes.time", "longer than %s", m.limit.Time)
	}
	return nil
}

func errLimit(name, format string, limit any) error {
	e := kg.Errorf(kg.CodeJudgeLimit, "validation by the shapes takes "+format, limit)
	e.Limit, e.Hint = name, "Split the update, or ask an administrator for simpler shapes."
	return e
}
