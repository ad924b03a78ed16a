package pattern

import (
	"slices"

	"koine/kg"
)

// stepKind says what a step of a plan does for each row that comes to it.
type stepKind uint8

const (
	scanStep     stepKind = iota // reads a triple, and merges others with it
	pathStep                     // follows a property path
	filterStep                   // asks a filter
	unionStep                    // goes on with the rows of each alternative
	optionalStep                 // goes on with the rows of a group, or without
	absentStep                   // goes on unless a group has a row
	mergeStep                    // compares a group's own variable with the one outside
)

// step is one step of a plan, with what it did once it has run.
type step struct {
	kind   stepKind
	triple *boundTriple
	order  string  // of the index that the triple is read from
	merged []check // with the triple's rows as they come
	filter *boundFilter
	absent *absent
	merge  merge
	scan   *scanOp // once it is at work
	groups []*plan // of a union, an optional group, and those that absent had

	estimate float64 // rows behind it
	runs     int64
	read     int64 // statements
	rows     int64
}

// check is a triple whose only unbound variable is one that the step's triple
// gives in order: both are walked side by side.
type check struct {
	triple *boundTriple
	at     int // the variable's place in it
	order  string
}

// plan is the steps of a group.
type plan struct{ steps []*step }

// planner makes plans.
type planner struct {
	*builder
	*estimator
	choose func(elements []element, bound slots) ([]int, error) // a join order
	// orders are the join orders that were chosen, group by group; those of a
	// place that is gone on from come first.
	orders, forced []byte
	foreign        bool // forced does not fit the pattern
}

// group plans a scope of which some slots are bound when it begins.
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

// order takes the next forced order, or chooses one.
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

// grouping is a group while it is planned.
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

// triple adds the first element of what is left, with the others that can be
// merged with it.
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

// anyID stands for an id that is not known yet, of a resource as most are.
var anyID = kg.ID{2}

// shape is the pattern with some id for each slot that is bound: it says which
// index the triple is read from.
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

// leading is the slot of the variable that the rows of the triple come sorted
// by, -1 if there is none.
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

// bindsTwice tells that one unbound variable stands in two places.
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

// mergeable tells whether the slot is all of the triple that is not bound, and
// in which place: its rows then come sorted by it.
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

// conditions adds the filters and NotExists whose variables no longer change,
// at the end all.
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
