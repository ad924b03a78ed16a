package pattern

import (
	"context"
	"runtime"

	"koine/kg"
)

// op is a step at work: it is run for each row that comes to it, and runs the
// next for each of its own. false means to stop everything: enough was given,
// or something failed. An op is never run again while it runs.
type op interface{ run() bool }

// machine is what the ops of an evaluation share. It belongs to one goroutine.
type machine struct {
	ctx      context.Context
	snapshot *kg.Snapshot
	limits   Limits
	row      []kg.ID // by slot; zero is unbound
	read     int64   // statements
	made     int64   // rows
	looks    int
	err      error
	sweeps   []*kg.Sweep
	outer    outermost
}

// checkEvery is after how many looks into the index an evaluation sees whether
// it is still wanted, and lets others run.
const checkEvery = 256

// look counts a look into the index, which may find nothing.
func (m *machine) look() bool {
	if m.looks++; m.looks%checkEvery == 0 {
		if m.err = m.ctx.Err(); m.err != nil {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// statement counts one that was read.
func (m *machine) statement(s *step) bool {
	s.read++
	if m.read++; m.read > m.limits.Statements {
		m.err = tooMuchRead("reads", "statements", m.limits.Statements)
		return false
	}
	return true
}

// hand counts a row that a step hands on.
func (m *machine) hand(s *step) bool {
	s.rows++
	if m.made++; m.made > m.limits.Rows {
		m.err = tooMuchRead("rows", "rows on the way", m.limits.Rows)
		return false
	}
	return true
}

func (m *machine) sweep() *kg.Sweep {
	w := m.snapshot.Sweep()
	m.sweeps = append(m.sweeps, w)
	return w
}

func (m *machine) close() {
	for _, w := range m.sweeps {
		w.Close()
	}
	m.sweeps = nil
}

// link makes ops of a plan that run last for each of its rows.
func (m *machine) link(p *plan, last op, planner *planner) op {
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := p.steps[i]
		switch s.kind {
		case scanStep:
			s.scan = newScan(m, s, last)
			last = s.scan
		case pathStep:
			last = &pathOp{m: m, step: s, next: last, builder: planner.builder}
		case filterStep:
			last = &filterOp{m: m, step: s, next: last, terms: make([]kg.Term, len(s.filter.slots))}
		case unionStep:
			u := &unionOp{m: m, step: s, next: last}
			for _, g := range s.groups {
				u.alternatives = append(u.alternatives, m.link(g, &passOp{m, s, last}, planner))
			}
			last = u
		case optionalStep:
			o := &optionalOp{m: m, step: s, next: last}
			o.group = m.link(s.groups[0], &foundOp{o}, planner)
			last = o
		case absentStep:
			last = &absentOp{m: m, step: s, next: last, planner: planner, groups: map[slots]op{}}
		case mergeStep:
			last = &mergeOp{m: m, step: s, next: last}
		}
	}
	return last
}
