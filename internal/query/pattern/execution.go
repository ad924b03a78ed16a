package pattern

import (
	"context"
	"runtime"

	"koine/kg"
)

// op is a linked step. processRow is called once for each input row and calls the next
// op for each output row. It returns false to stop the evaluation: enough rows
// were returned, or an error occurred. An op is not reentrant.
type op interface{ processRow() bool }

// execution is the state that the ops of an evaluation share. It belongs to one
// goroutine.
type execution struct {
	ctx      context.Context
	snapshot *kg.Snapshot
	limits   Limits
	row      []kg.ID // indexed by slot; zero is unbound
	read     int64   // statements read
	made     int64   // rows passed on
	seeks    int
	err      error
	sweeps   []*kg.Sweep
	outer    outerScan
}

// checkEvery is the number of index seeks between two checks for cancellation,
// where the evaluation also yields the processor.
const checkEvery = 256

// countSeek counts an index seek. It reports false if the context is done.
func (m *execution) countSeek() bool {
	if m.seeks++; m.seeks%checkEvery == 0 {
		if m.err = m.ctx.Err(); m.err != nil {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// countStatement counts a statement that was read. It reports false above the limit.
func (m *execution) countStatement(s *step) bool {
	s.read++
	if m.read++; m.read > m.limits.Statements {
		m.err = tooMuchRead("reads", "statements", m.limits.Statements)
		return false
	}
	return true
}

// countRow counts a row that a step passes on. It reports false above the limit.
func (m *execution) countRow(s *step) bool {
	s.rows++
	if m.made++; m.made > m.limits.Rows {
		m.err = tooMuchRead("rows", "intermediate rows", m.limits.Rows)
		return false
	}
	return true
}

func (m *execution) newSweep() *kg.Sweep {
	w := m.snapshot.Sweep()
	m.sweeps = append(m.sweeps, w)
	return w
}

func (m *execution) close() {
	for _, w := range m.sweeps {
		w.Close()
	}
	m.sweeps = nil
}

// linkPlan creates the ops of a plan; last runs for each of its rows.
func (m *execution) linkPlan(p *plan, last op, planner *planner) op {
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := p.steps[i]
		switch s.kind {
		case scanStep:
			s.scan = newScan(m, s, last)
			last = s.scan
		case textStep:
			s.find = &textOp{m: m, step: s, next: last}
			last = s.find
		case pathStep:
			last = &pathOp{m: m, step: s, next: last, builder: planner.builder}
		case filterStep:
			last = &filterOp{m: m, step: s, next: last, terms: make([]kg.Term, len(s.filter.slots))}
		case unionStep:
			u := &unionOp{m: m, step: s, next: last}
			for _, g := range s.groups {
				u.alternatives = append(u.alternatives, m.linkPlan(g, &passOp{m, s, last}, planner))
			}
			last = u
		case optionalStep:
			o := &optionalOp{m: m, step: s, next: last}
			o.group = m.linkPlan(s.groups[0], &foundOp{o}, planner)
			last = o
		case absentStep:
			last = &absentOp{m: m, step: s, next: last, planner: planner, groups: map[slots]op{}}
		case leapStep:
			last = &leapOp{m: m, step: s, next: last}
		case mergeStep:
			last = &mergeOp{m: m, step: s, next: last}
		}
	}
	return last
}
