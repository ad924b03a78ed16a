package shapes

import (
	"context"
	"io"
	"regexp"
	"runtime"
	"time"
	"unicode/utf8"

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
	// instructionsPerStep is how many instructions of a regular expression count as
	// one step, each being executed for each character at most.
	instructionsPerStep = 256
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

// match tells whether the text has a match of a regular expression of so many
// instructions. It pays for what it executes as it goes, and ends with the meter.
func (m *meter) match(re *regexp.Regexp, instructions int, text string) (bool, error) {
	if work := instructions * len(text); work <= lookEvery*instructionsPerStep {
		return re.MatchString(text), m.spend(work / instructionsPerStep)
	}
	p := pacedText{text: text, instructions: instructions, meter: m}
	found := re.MatchReader(&p)
	if p.err == nil {
		p.err = m.spend(p.work / instructionsPerStep)
	}
	return found, p.err
}

// pacedText gives a text to a regular expression for as long as the meter pays for it.
type pacedText struct {
	text         string
	instructions int
	meter        *meter
	work         int // not paid for yet
	err          error
}

// ReadRune implements io.RuneReader. An error ends the match; it is kept in err.
func (p *pacedText) ReadRune() (r rune, size int, err error) {
	if p.text == "" || p.err != nil {
		return 0, 0, io.EOF
	}
	p.work += p.instructions
	if steps := p.work / instructionsPerStep; steps >= lookEvery {
		p.work %= instructionsPerStep
		if p.err = p.meter.spend(steps); p.err != nil {
			return 0, 0, io.EOF
		}
	}
	r, size = utf8.DecodeRuneInString(p.text)
	p.text = p.text[size:]
	return r, size, nil
}
