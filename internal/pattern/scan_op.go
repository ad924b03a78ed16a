package pattern

import "koine/kg"

// scanOp scans a triple for each input row, side by side with the triples that
// are merged with it.
type scanOp struct {
	m     *machine
	step  *step
	next  op
	sweep *kg.Sweep
	// outermost is set if cursors consist of this op's rows.
	outermost bool

	lead   int // position of the variable that is merged on
	checks []walked

	free  [4]int // unbound positions of the current row
	nfree int
}

// walked is a merged triple with the state of its scan.
type walked struct {
	check
	sweep   *kg.Sweep
	pattern kg.IDPattern
	open    bool
	on      kg.ID // current value, zero at the end
}

func newScan(m *machine, s *step, next op) *scanOp {
	o := &scanOp{m: m, step: s, next: next, sweep: m.sweep(), lead: -1}
	for _, c := range s.merged {
		o.checks = append(o.checks, walked{check: c, sweep: m.sweep()})
		o.lead = -2 // set by the first run
	}
	return o
}

func (o *scanOp) run() bool {
	o.step.runs++
	t := o.step.triple
	p, ok := t.pattern(o.m.row)
	if !ok {
		return true
	}
	o.nfree = 0
	for i, at := range t.places {
		if at.slot >= 0 && o.m.row[at.slot].IsZero() {
			o.free[o.nfree] = i
			o.nfree++
		}
	}
	if t.oneOf == nil {
		return o.walk(p, o.begin(p))
	}
	for _, id := range t.oneOf {
		p.Object = id
		if from := o.begin(p); from != nil && compareIDs(id, from.Object) < 0 {
			continue
		}
		if !o.walk(p, o.begin(p)) {
			return false
		}
	}
	return true
}

// begin returns the quad at which the outermost scan resumes, nil for others.
func (o *scanOp) begin(p kg.IDPattern) *kg.IDQuad {
	if !o.outermost {
		return nil
	}
	return o.m.outer.from
}

// walk scans one pattern from a quad and passes its rows on.
func (o *scanOp) walk(p kg.IDPattern, from *kg.IDQuad) bool {
	if !o.m.look() {
		return false
	}
	sorted := o.prepare(p)
	o.sweep.Seek(p, nil)
	if from != nil && (o.step.triple.oneOf == nil || p.Object == from.Object) {
		o.sweep.To(*from)
	}
	var last kg.IDQuad
	var passed kg.ID // last value on which the checks were advanced
	holds, first := true, true
	for o.sweep.Next() {
		q := &o.sweep.Row().IDQuad
		if !o.m.statement(o.step) {
			return false
		}
		if o.step.triple.anyGraph && !first && q.Object == last.Object && q.Subject == last.Subject && q.Predicate == last.Predicate {
			continue
		}
		first, last = false, *q
		if v := *parts(&last)[max(o.lead, 0)]; sorted && v != passed {
			passed = v
			var ended bool
			if holds, ended = o.meet(p, v); ended {
				break
			}
		}
		if holds && !o.row(&last, sorted) {
			return false
		}
	}
	if o.m.err == nil {
		o.m.err = o.sweep.Err()
	}
	return o.m.err == nil
}

// meet advances the checks to a value, and the scan to the next value on which
// all checks may agree. ended is true if a check is exhausted or failed.
func (o *scanOp) meet(p kg.IDPattern, v kg.ID) (holds, ended bool) {
	holds, ahead := o.agree(v)
	if !holds {
		if o.m.err != nil || ahead.IsZero() {
			return false, true
		}
		to := kg.IDQuad(p)
		*parts(&to)[o.lead] = ahead
		o.sweep.To(to)
	}
	return holds, false
}

// row binds the variables of a quad and passes the row on.
func (o *scanOp) row(q *kg.IDQuad, checked bool) bool {
	ids, places := parts(q), &o.step.triple.places
	bound, ok := 0, !o.step.triple.excludes(q.Predicate)
	for ; ok && bound < o.nfree; bound++ {
		i := o.free[bound]
		slot := places[i].slot
		if had := o.m.row[slot]; had.IsZero() {
			o.m.row[slot] = *ids[i]
		} else { // the variable occurs twice in the triple
			ok = had == *ids[i]
		}
	}
	more := true
	if ok && !checked {
		ok = o.probe()
	}
	if ok && o.m.err == nil {
		if o.outermost {
			o.m.outer.begin(q, o.step.triple.anyGraph)
		}
		more = o.m.hand(o.step) && o.next.run()
	}
	for k := range o.nfree {
		o.m.row[places[o.free[k]].slot] = kg.ID{}
	}
	return more && o.m.err == nil
}

// prepare reports whether the rows are sorted by the merge variable as planned: a
// variable may be bound that the plan expected to be unbound.
func (o *scanOp) prepare(p kg.IDPattern) bool {
	if len(o.checks) == 0 {
		return false
	}
	places := &o.step.triple.places
	if o.lead == -2 {
		slot := o.checks[0].triple.places[o.checks[0].at].slot
		for i, at := range places {
			if at.slot == slot {
				o.lead = i
			}
		}
	}
	sorted := o.m.row[places[o.lead].slot].IsZero() && leadsWith(p, o.lead, places)
	for i := range o.checks {
		c := &o.checks[i]
		c.open = false
		var ok bool
		if c.pattern, ok = c.triple.pattern(o.m.row); !ok {
			c.pattern = kg.IDPattern{} // probe finds that nothing matches
			sorted = false
		}
	}
	return sorted
}

// leadsWith reports whether the rows of the pattern are sorted by this position.
func leadsWith(p kg.IDPattern, place int, places *[4]place) bool {
	q := kg.IDQuad(p)
	ids := parts(&q)
	if p.Subject.IsZero() && p.Predicate.IsZero() && !p.Object.IsZero() && !p.Object.IsResource() {
		return false // sorted within each predicate only
	}
	for _, letter := range p.Order() {
		if i := placeOf(letter); ids[i].IsZero() {
			return i == place
		}
	}
	return false
}

// agree advances all checks to a value. If one of them lacks it, agree returns
// false and the next value that all may have, zero if there is none.
func (o *scanOp) agree(v kg.ID) (holds bool, ahead kg.ID) {
	for i := range o.checks {
		c := &o.checks[i]
		if c.open && c.on.IsZero() {
			return false, kg.ID{}
		}
		if !c.open || compareIDs(c.on, v) < 0 {
			if !o.advance(c, v) {
				return false, kg.ID{}
			}
		}
		if c.on != v {
			return false, c.on
		}
	}
	return true, v
}

// advance moves a check to its first value at or behind v.
func (o *scanOp) advance(c *walked, v kg.ID) bool {
	if !c.open {
		if !o.m.look() {
			return false
		}
		c.open = true
		c.sweep.Seek(c.pattern, nil)
	}
	to := kg.IDQuad(c.pattern)
	*parts(&to)[c.at] = v
	c.sweep.To(to)
	c.on = kg.ID{}
	if c.sweep.Next() {
		c.on = *parts(&c.sweep.Row().IDQuad)[c.at]
		return o.m.statement(o.step)
	}
	o.m.err = c.sweep.Err()
	return false
}

// probe looks each check up for the current row.
func (o *scanOp) probe() bool {
	for i := range o.checks {
		c := &o.checks[i]
		p, ok := c.triple.pattern(o.m.row)
		if !ok || !o.m.look() {
			return false
		}
		c.sweep.Seek(p, nil)
		if !c.sweep.Next() {
			o.m.err = c.sweep.Err()
			return false
		}
		if !o.m.statement(o.step) {
			return false
		}
	}
	return true
}
