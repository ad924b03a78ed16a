package pattern

import (
	"slices"

	"koine/kg"
)

// stepKind is the kind of a plan step.
type stepKind uint8

const (
	scanStep     stepKind = iota // scans a triple and merges others with it
	pathStep                     // follows a property path
	filterStep                   // evaluates a filter
	unionStep                    // runs each alternative
	optionalStep                 // runs a group, and passes the row on if the group has no solution
	absentStep                   // passes the row on if a group has no solution
	mergeStep                    // compares a group's own variable with the outer one
)

// step is one step of a plan, with its counters.
type step struct {
	kind   stepKind
	triple *boundTriple
	order  string  // index that the triple is read from
	merged []check // triples merged with the scan
	filter *boundFilter
	absent *absent
	merge  merge
	scan   *scanOp // set when the plan is linked
	groups []*plan // of a union or an optional group, and those that an absentStep planned

	estimate float64 // expected rows
	runs     int64
	read     int64 // statements read
	rows     int64
}

// check is a triple whose only unbound variable is the one by which the step's
// triple is sorted: both are scanned side by side.
type check struct {
	triple *boundTriple
	at     int // position of the variable
	order  string
}

// plan is a sequence of steps for a group.
type plan struct{ steps []*step }

// planner turns scopes into plans.
type planner struct {
	*builder
	*estimator
	choose func(elements []element, bound slots) ([]int, error) // chooses a join order
	// orders are the join orders in use, group by group. forced are those of the
	// cursor to resume from; they are used first.
	orders, forced []byte
	foreign        bool // forced does not fit the pattern
}

// group plans a scope for rows in which the given slots are bound.
func (p *planner) group(s *scope, bound slots) (*plan, error) {
	elements := s.elements()
	order, err := p.order(elements, bound)
	if err != nil {
		return nil, err
	}
	g := &grouping{planner: p, scope: s, bound: bound, rows: 1, plan: &plan{}, asked: make([]bool, len(s.filters)), absentDone: make([]bool, len(s.absent))}
	g.conditions(false)
	for k, i := range order {
		if elements[i].triple == nil {
			err = g.union(elements[i])
		} else if !g.isMerged(elements[i].triple) {
			err = g.triple(elements, order[k:])
		}
		if err != nil {
			return nil, err
		}
		g.conditions(false)
	}
	for _, o := range s.optionals {
		inner, err := p.group(o, g.bound)
		if err != nil {
			return nil, err
		}
		g.add(&step{kind: optionalStep, groups: []*plan{inner}})
	}
	if s.optional {
		g.merges()
		g.conditions(true)
	} else {
		g.conditions(true)
		g.merges()
	}
	return g.plan, nil
}

// order returns the next forced order, or chooses one.
func (p *planner) order(elements []element, bound slots) ([]int, error) {
	n := len(elements)
	if p.forced == nil {
		order, err := p.choose(elements, bound)
		for _, i := range order {
			p.orders = append(p.orders, byte(i))
		}
		return order, err
	}
	order := make([]int, n)
	if len(p.forced) < n {
		p.foreign, p.forced = true, append(p.forced, make([]byte, n)...)
	}
	seen := make([]bool, n)
	for k, i := range p.forced[:n] {
		if int(i) >= n || seen[i] {
			p.foreign = true
			for k := range order {
				order[k] = k
			}
			break
		}
		order[k], seen[i] = int(i), true
	}
	p.orders = append(p.orders, p.forced[:n]...)
	p.forced = p.forced[n:]
	return order, nil
}

// grouping is the state of planning one group.
type grouping struct {
	*planner
	scope             *scope
	bound             slots
	rows              float64
	plan              *plan
	merged            []*boundTriple
	asked, absentDone []bool
}

func (g *grouping) add(s *step) {
	s.estimate = g.rows
	g.plan.steps = append(g.plan.steps, s)
}

func (g *grouping) isMerged(t *boundTriple) bool { return slices.Contains(g.merged, t) }

// triple adds a step for the first remaining element, merged with the other
// elements that can share its scan.
func (g *grouping) triple(elements []element, left []int) error {
	t := elements[left[0]].triple
	rows, _, err := g.estimator.triple(t, &g.bound)
	if err != nil {
		return err
	}
	g.rows *= rows
	if t.path != nil {
		g.bound.addAll(&t.variables)
		g.add(&step{kind: pathStep, triple: t})
		return nil
	}
	s := &step{kind: scanStep, triple: t, order: t.shape(&g.bound).Order()}
	before := g.bound
	g.bound.addAll(&t.variables)
	if slot := t.leading(&before); slot >= 0 {
		for _, i := range left[1:] {
			other := elements[i].triple
			if other == nil || g.isMerged(other) {
				continue
			}
			if at, ok := other.mergeable(slot, &before); ok {
				s.merged = append(s.merged, check{other, at, other.shape(&before).Order()})
				g.merged = append(g.merged, other)
				rows, _, err := g.estimator.triple(other, &g.bound)
				if err != nil {
					return err
				}
				g.rows *= min(rows, 1)
			}
		}
	}
	g.add(s)
	return nil
}

// anyID is a placeholder for an unknown id; it is a resource, as most ids are.
var anyID = kg.ID{2}

// shape returns the pattern with a placeholder for each bound slot. It selects
// the index that the triple is read from.
func (t *boundTriple) shape(bound *slots) (p kg.IDPattern) {
	for i, id := range parts((*kg.IDQuad)(&p)) {
		at := t.places[i]
		if *id = at.id; at.slot >= 0 && bound.has(at.slot) {
			*id = anyID
		}
	}
	if t.oneOf != nil {
		p.Object = t.oneOf[0]
	}
	return p
}

// leading returns the slot of the variable by which the triple's rows are sorted,
// -1 if there is none.
func (t *boundTriple) leading(bound *slots) int {
	if t.oneOf != nil || t.dead {
		return -1
	}
	p := t.shape(bound)
	q := kg.IDQuad(p)
	if t.bindsTwice(bound) {
		return -1
	}
	ids := parts(&q)
	for _, letter := range p.Order() {
		i := placeOf(letter)
		if !ids[i].IsZero() {
			continue
		}
		return t.places[i].slot
	}
	return -1
}

// bindsTwice reports whether one unbound variable occurs in two positions.
func (t *boundTriple) bindsTwice(bound *slots) bool {
	for i, a := range t.places {
		for _, b := range t.places[:i] {
			if a.slot >= 0 && a.slot == b.slot && !bound.has(a.slot) {
				return true
			}
		}
	}
	return false
}

func placeOf(letter rune) int {
	switch letter {
	case 'S':
		return subjectPlace
	case 'P':
		return predicatePlace
	case 'O':
		return objectPlace
	}
	return graphPlace
}

// mergeable reports whether slot is the only unbound variable of the triple, and
// its position. The rows of the triple are then sorted by it.
func (t *boundTriple) mergeable(slot int, bound *slots) (at int, ok bool) {
	if t.path != nil || t.dead || t.leading(bound) != slot {
		return 0, false
	}
	for i, p := range t.places {
		switch {
		case p.slot == slot:
			at = i
		case p.slot >= 0 && !bound.has(p.slot), p.slot < 0 && p.id.IsZero() && i != graphPlace:
			return 0, false
		}
	}
	return at, true
}

func (g *grouping) union(x element) error {
	rows, _, err := g.element(x, &g.bound)
	if err != nil {
		return err
	}
	s := &step{kind: unionStep}
	for _, alternative := range x.union {
		inner, err := g.planner.group(alternative, g.bound)
		if err != nil {
			return err
		}
		s.groups = append(s.groups, inner)
	}
	g.bound.addAll(&x.binds)
	g.rows *= rows
	g.add(s)
	return nil
}

// conditions adds the filters and NotExists whose variables no longer change, or
// all remaining ones.
func (g *grouping) conditions(all bool) {
	for i, f := range g.scope.filters {
		if !g.asked[i] && (all || f.open.within(&g.bound)) {
			g.asked[i] = true
			g.add(&step{kind: filterStep, filter: f})
		}
	}
	for i, n := range g.scope.absent {
		if !g.absentDone[i] && (all || n.open.within(&g.bound)) {
			g.absentDone[i] = true
			g.add(&step{kind: absentStep, absent: n})
		}
	}
}

func (g *grouping) merges() {
	for _, m := range g.scope.merges {
		g.add(&step{kind: mergeStep, merge: m})
	}
}
