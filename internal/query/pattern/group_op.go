package pattern

import "koine/kg"

type filterOp struct {
	m     *execution
	step  *step
	next  op
	terms []kg.Term
}

func (o *filterOp) processRow() bool {
	o.step.runs++
	f := o.step.filter
	for i, slot := range f.slots {
		o.terms[i] = kg.Term{}
		if slot < 0 || o.m.row[slot].IsZero() {
			continue
		}
		if o.terms[i], o.m.err = o.m.snapshot.Term(o.m.row[slot]); o.m.err != nil {
			return false
		}
	}
	if !f.holds(o.terms) {
		return true
	}
	o.step.rows++
	return o.next.processRow()
}

type unionOp struct {
	m            *execution
	step         *step
	next         op
	alternatives []op
}

func (o *unionOp) processRow() bool {
	o.step.runs++
	for _, a := range o.alternatives {
		if !a.processRow() {
			return false
		}
	}
	return true
}

// passOp ends an alternative.
type passOp struct {
	m    *execution
	step *step
	next op
}

func (o *passOp) processRow() bool { return o.m.countRow(o.step) && o.next.processRow() }

type optionalOp struct {
	m     *execution
	step  *step
	next  op
	group op
	found bool
}

func (o *optionalOp) processRow() bool {
	o.step.runs++
	o.found = false
	if !o.group.processRow() {
		return false
	}
	return o.found || o.m.countRow(o.step) && o.next.processRow()
}

// foundOp ends an optional group.
type foundOp struct{ of *optionalOp }

func (o *foundOp) processRow() bool {
	o.of.found = true
	return o.of.m.countRow(o.of.step) && o.of.next.processRow()
}

type mergeOp struct {
	m    *execution
	step *step
	next op
}

func (o *mergeOp) processRow() bool {
	o.step.runs++
	inner, outer := o.m.row[o.step.merge.inner], &o.m.row[o.step.merge.outer]
	switch {
	case inner.IsZero() || *outer == inner:
		o.step.rows++
		return o.next.processRow()
	case !outer.IsZero():
		return true // incompatible
	}
	*outer = inner
	o.step.rows++
	more := o.next.processRow()
	// A plan for NotExists may have extended the row meanwhile.
	o.m.row[o.step.merge.outer] = kg.ID{}
	return more
}

// absentOp passes a row on if a group has no solution for it. The row is
// substituted into the group (SPARQL 1.1, section 18.6), which yields a different
// group for each set of bound variables: each is planned on first use.
type absentOp struct {
	m       *execution
	step    *step
	next    op
	planner *planner
	groups  map[slots]op
	found   bool
}

func (o *absentOp) processRow() bool {
	o.step.runs++
	group, err := o.groupFor()
	if err != nil {
		o.m.err = err
		return false
	}
	o.found = false
	if !group.processRow() && !o.found {
		return false
	}
	if o.found {
		return o.m.err == nil
	}
	o.step.rows++
	return o.next.processRow()
}

// groupFor returns the group for the variables that the row binds.
func (o *absentOp) groupFor() (op, error) {
	n := o.step.absent
	var bound slots
	for _, slot := range n.visible {
		if !o.m.row[slot].IsZero() {
			bound.add(slot)
		}
	}
	if g, ok := o.groups[bound]; ok {
		return g, nil
	}
	at := bindContext{outer: map[string]int{}, constant: map[string]int{}, shared: func(string) bool { return false }}
	for name, slot := range n.visible {
		if bound.has(slot) {
			at.constant[name] = slot
		}
	}
	for _, name := range scopeOf(n.group) {
		if _, ok := at.constant[name]; !ok {
			slot, err := o.planner.newSlot()
			if err != nil {
				return nil, err
			}
			at.outer[name] = slot
		}
	}
	s, err := o.planner.bindGroup(n.group, at)
	if err != nil {
		return nil, err
	}
	orders, forced := o.planner.orders, o.planner.forced
	o.planner.forced = nil
	p, err := o.planner.planGroup(s, bound)
	o.planner.orders, o.planner.forced = orders, forced
	if err != nil {
		return nil, err
	}
	o.m.row = append(o.m.row, make([]kg.ID, max(0, o.planner.next-len(o.m.row)))...)
	o.step.groups = append(o.step.groups, p)
	g := o.m.linkPlan(p, &presentOp{o}, o.planner)
	o.groups[bound] = g
	return g, nil
}

// presentOp ends a NotExists group: one solution is enough.
type presentOp struct{ of *absentOp }

func (o *presentOp) processRow() bool {
	o.of.found = true
	return false
}
