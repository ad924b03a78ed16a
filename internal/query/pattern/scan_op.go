package pattern

import "koine/kg"

// scanOp scans a triple for each input row, side by side with the triples that
// are merged with it.
type scanOp struct {
	m     *execution
	step  *step
	next  op
	sweep *kg.Sweep
	// outermost is set if cursors consist of this op's rows.
	outermost bool

	lead   int // position of the variable that is merged on
	checks []mergedScan

	free  [4]int // unbound positions of the current row
	nfree int
}

// mergedScan is a merged triple with the state of its scan.
type mergedScan struct {
	check
	sweep   *kg.Sweep
	pattern kg.IDPattern
	open    bool
	current kg.ID // current value, zero at the end
}

func newScan(m *execution, s *step, next op) *scanOp {
	o := &scanOp{m: m, step: s, next: next, sweep: m.newSweep(), lead: -1}
	for _, c := range s.merged {
		o.checks = append(o.checks, mergedScan{check: c, sweep: m.newSweep()})
		o.lead = -2 // set by the first run
	}
	return o
}

func (o *scanOp) processRow() bool {
	o.step.runs++
	t := o.step.triple
	p, ok := t.patternFor(o.m.row)
	if !ok {
		return true
	}
	o.findFree()
	if t.oneOf == nil {
		return o.scanPattern(p, o.resumePoint(p))
	}
	for _, id := range t.oneOf {
		p.Object = id
		if from := o.resumePoint(p); from != nil && id.Compare(from.Object) < 0 {
			continue
		}
		if !o.scanPattern(p, o.resumePoint(p)) {
			return false
		}
	}
	return true
}

// findFree finds the positions whose variables the current row leaves unbound.
func (o *scanOp) findFree() {
	o.nfree = 0
	for i, at := range o.step.triple.nodes {
		if at.slot >= 0 && o.m.row[at.slot].IsZero() {
			o.free[o.nfree] = i
			o.nfree++
		}
	}
}

// resumePoint returns the quad at which the outermost scan resumes, nil for others.
func (o *scanOp) resumePoint(p kg.IDPattern) *kg.IDQuad {
	if !o.outermost {
		return nil
	}
	return o.m.outer.from
}

// scanPattern scans one pattern from a quad and passes its rows on.
func (o *scanOp) scanPattern(p kg.IDPattern, from *kg.IDQuad) bool {
	if !o.m.countSeek() {
		return false
	}
	sorted := o.prepareChecks(p)
	o.sweep.SeekObjects(p, o.step.triple.objects, nil)
	if from != nil && (o.step.triple.oneOf == nil || p.Object == from.Object) {
		o.sweep.To(*from)
	}
	var last kg.IDQuad
	var passed kg.ID // last value on which the checks were advanced
	holds, first := true, true
	for o.sweep.Next() {
		q := &o.sweep.Row().IDQuad
		if !o.m.countStatement(o.step) {
			return false
		}
		if o.step.triple.anyGraph && !first && q.Object == last.Object && q.Subject == last.Subject && q.Predicate == last.Predicate {
			continue
		}
		first, last = false, *q
		if v := *quadParts(&last)[max(o.lead, 0)]; sorted && v != passed {
			passed = v
			var ended bool
			if holds, ended = o.matchChecks(p, v); ended {
				break
			}
		}
		if holds && !o.emitRow(&last, sorted) {
			return false
		}
	}
	if o.m.err == nil {
		o.m.err = o.sweep.Err()
	}
	return o.m.err == nil
}

// matchChecks advances the checks to a value, and the scan to the next value on which
// all checks may agree. ended is true if a check is exhausted or failed.
func (o *scanOp) matchChecks(p kg.IDPattern, v kg.ID) (holds, ended bool) {
	holds, ahead := o.advanceChecks(v)
	if !holds {
		if o.m.err != nil || ahead.IsZero() {
			return false, true
		}
		to := kg.IDQuad(p)
		*quadParts(&to)[o.lead] = ahead
		o.sweep.To(to)
	}
	return holds, false
}

// emitRow binds the variables of a quad and passes the row on.
func (o *scanOp) emitRow(q *kg.IDQuad, checked bool) bool {
	ids, nodes := quadParts(q), &o.step.triple.nodes
	bound, ok := 0, !o.step.triple.excludesPredicate(q.Predicate)
	for ; ok && bound < o.nfree; bound++ {
		i := o.free[bound]
		slot := nodes[i].slot
		if had := o.m.row[slot]; had.IsZero() {
			o.m.row[slot] = *ids[i]
		} else { // the variable occurs twice in the triple
			ok = had == *ids[i]
		}
	}
	more := true
	if ok && !checked {
		ok = o.probeChecks()
	}
	if ok && o.m.err == nil {
		if o.outermost {
			o.m.outer.beginRow(q, o.step.triple.anyGraph)
		}
		more = o.m.countRow(o.step) && o.next.processRow()
	}
	for k := range o.nfree {
		o.m.row[nodes[o.free[k]].slot] = kg.ID{}
	}
	return more && o.m.err == nil
}

// prepareChecks reports whether the rows are sorted by the merge variable as planned: a
// variable may be bound that the plan expected to be unbound.
func (o *scanOp) prepareChecks(p kg.IDPattern) bool {
	if len(o.checks) == 0 {
		return false
	}
	nodes := &o.step.triple.nodes
	if o.lead == -2 {
		slot := o.checks[0].triple.nodes[o.checks[0].at].slot
		for i, at := range nodes {
			if at.slot == slot {
				o.lead = i
			}
		}
	}
	sorted := o.m.row[nodes[o.lead].slot].IsZero() && isSortedBy(p, o.lead, nodes)
	for i := range o.checks {
		c := &o.checks[i]
		c.open = false
		var ok bool
		if c.pattern, ok = c.triple.patternFor(o.m.row); !ok {
			c.pattern = kg.IDPattern{} // probeChecks finds that nothing matches
			sorted = false
		}
	}
	return sorted
}

// isSortedBy reports whether the rows of the pattern are sorted by this position.
func isSortedBy(p kg.IDPattern, pos int, nodes *[4]boundNode) bool {
	q := kg.IDQuad(p)
	ids := quadParts(&q)
	if p.Subject.IsZero() && p.Predicate.IsZero() && !p.Object.IsZero() && !p.Object.IsResource() {
		return false // sorted within each predicate only
	}
	for _, letter := range p.Order() {
		if i := positionOf(letter); ids[i].IsZero() {
			return i == pos
		}
	}
	return false
}

// advanceChecks advances all checks to a value. If one of them lacks it, agree returns
// false and the next value that all may have, zero if there is none.
func (o *scanOp) advanceChecks(v kg.ID) (holds bool, ahead kg.ID) {
	for i := range o.checks {
		c := &o.checks[i]
		if c.open && c.current.IsZero() {
			return false, kg.ID{}
		}
		if !c.open || c.current.Compare(v) < 0 {
			if !o.advanceCheck(c, v) {
				return false, kg.ID{}
			}
		}
		if c.current != v {
			return false, c.current
		}
	}
	return true, v
}

// advanceCheck moves a check to its first value at or behind v.
func (o *scanOp) advanceCheck(c *mergedScan, v kg.ID) bool {
	if !c.open {
		if !o.m.countSeek() {
			return false
		}
		c.open = true
		c.sweep.Seek(c.pattern, nil)
	}
	to := kg.IDQuad(c.pattern)
	*quadParts(&to)[c.at] = v
	c.sweep.To(to)
	c.current = kg.ID{}
	if c.sweep.Next() {
		c.current = *quadParts(&c.sweep.Row().IDQuad)[c.at]
		return o.m.countStatement(o.step)
	}
	o.m.err = c.sweep.Err()
	return false
}

// probeChecks looks each check up for the current row.
func (o *scanOp) probeChecks() bool {
	for i := range o.checks {
		c := &o.checks[i]
		p, ok := c.triple.patternFor(o.m.row)
		if !ok || !o.m.countSeek() {
			return false
		}
		c.sweep.Seek(p, nil)
		if !c.sweep.Next() {
			o.m.err = c.sweep.Err()
			return false
		}
		if !o.m.countStatement(o.step) {
			return false
		}
	}
	return true
}
