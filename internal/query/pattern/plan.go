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
	textStep                     // finds by a text, or tests
	filterStep                   // evaluates a filter
	unionStep                    // runs each alternative
	optionalStep                 // runs a group, and passes the row on if the group has no solution
	absentStep                   // passes the row on if a group has no solution
	mergeStep                    // compares a group's own variable with the outer one
	leapStep                     // joins triples that form a cycle
)

// step is one step of a plan, with its counters.
type step struct {
	kind   stepKind
	triple *boundTriple
	order  string  // index that the triple is read from
	ranged bool    // a scan of the triple's objects only
	walked bool    // a scan in the order of the values of the objects
	merged []check // triples merged with the scan
	filter *boundFilter
	absent *notExists
	merge  merge
	text   *boundText
	tests  bool    // a textStep that is planned to test a bound variable
	find   *textOp // set when the plan is linked
	scan   *scanOp // set when the plan is linked
	leap   *leapPlan
	groups []*plan // of a union or an optional group, and those that an absentStep planned

	estimate float64 // expected rows
	runs     int64
	read     int64 // statements read
	rows     int64
}

// check is a triple with exactly one unbound variable, by which the step's
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
	anyOrder       bool // rows of the group that is planned next may come in any order
}

// planGroup plans a scope for rows in which the given slots are bound.
func (p *planner) planGroup(s *scope, bound slots) (*plan, error) {
	elements := s.joinElements()
	order, err := p.nextOrder(elements, bound)
	if err != nil {
		return nil, err
	}
	g := &groupPlanner{planner: p, scope: s, bound: bound, rows: 1, plan: &plan{}, filterDone: make([]bool, len(s.filters)), absentDone: make([]bool, len(s.absent))}
	g.addConditions(false)
	if err := g.addLeap(elements, order); err != nil {
		return nil, err
	}
	for k, i := range order {
		if t := elements[i].text; t != nil {
			g.addText(t)
		} else if elements[i].triple == nil {
			err = g.addUnion(elements[i])
		} else if !g.isMerged(elements[i].triple) {
			err = g.addTriple(elements, order[k:])
		}
		if err != nil {
			return nil, err
		}
		g.addConditions(false)
	}
	for _, o := range s.optionals {
		inner, err := p.planGroup(o, g.bound)
		if err != nil {
			return nil, err
		}
		g.addStep(&step{kind: optionalStep, groups: []*plan{inner}})
	}
	if s.optional {
		g.addMerges()
		g.addConditions(true)
	} else {
		g.addConditions(true)
		g.addMerges()
	}
	return g.plan, nil
}

// endSide marks a path that starts from the ends of its paths where neither end is bound. Groups of
// more elements have no such marks: their paths choose each time.
const endSide = 1 << 7

// nextOrder returns the next forced order, or chooses one.
func (p *planner) nextOrder(elements []element, bound slots) ([]int, error) {
	n := len(elements)
	if p.forced == nil {
		order, err := p.choose(elements, bound)
		for _, i := range order {
			at := byte(i)
			if t := elements[i].triple; t != nil && t.path != nil && n <= endSide {
				backwards, err := t.path.ChooseSide()
				if err != nil {
					return nil, err
				}
				if t.path.SetSide(backwards); backwards {
					at |= endSide
				}
			}
			p.orders = append(p.orders, at)
		}
		return order, err
	}
	order := make([]int, n)
	if len(p.forced) < n {
		p.foreign, p.forced = true, append(p.forced, make([]byte, n)...)
	}
	seen := make([]bool, n)
	for k, i := range p.forced[:n] {
		if n <= endSide {
			backwards := i&endSide != 0
			i &^= endSide
			if int(i) < n && elements[i].triple != nil && elements[i].triple.path != nil {
				elements[i].triple.path.SetSide(backwards)
			}
		}
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

// groupPlanner is the state of planning one group.
type groupPlanner struct {
	*planner
	scope                  *scope
	bound                  slots
	rows                   float64
	plan                   *plan
	merged                 []*boundTriple
	filterDone, absentDone []bool
}

func (g *groupPlanner) addStep(s *step) {
	s.estimate = g.rows
	g.plan.steps = append(g.plan.steps, s)
}

func (g *groupPlanner) isMerged(t *boundTriple) bool { return slices.Contains(g.merged, t) }

// addTriple adds a step for the first remaining element, merged with the other
// elements that can share its scan.
func (g *groupPlanner) addTriple(elements []element, left []int) error {
	t := elements[left[0]].triple
	rows, _, err := g.estimator.estimateTriple(t, &g.bound)
	if err != nil {
		return err
	}
	g.rows *= rows
	if t.path != nil {
		g.bound.addAll(&t.variables)
		g.addStep(&step{kind: pathStep, triple: t})
		return nil
	}
	s := &step{kind: scanStep, triple: t, order: t.indexPattern(&g.bound).Order()}
	s.ranged = t.selectsObjects(t.indexPattern(&g.bound))
	before := g.bound
	g.bound.addAll(&t.variables)
	if slot := t.sortSlot(&before); slot >= 0 {
		for _, i := range left[1:] {
			other := elements[i].triple
			if other == nil || g.isMerged(other) {
				continue
			}
			if at, ok := other.mergePosition(slot, &before); ok {
				s.merged = append(s.merged, check{other, at, other.indexPattern(&before).Order()})
				g.merged = append(g.merged, other)
				rows, _, err := g.estimator.estimateTriple(other, &g.bound)
				if err != nil {
					return err
				}
				g.rows *= min(rows, 1)
			}
		}
	}
	g.addStep(s)
	return nil
}

// anyID is a placeholder for an unknown id; it is a resource, as most ids are.
var anyID = kg.ID{2}

// indexPattern returns the pattern with a placeholder for each bound slot. It selects
// the index that the triple is read from.
func (t *boundTriple) indexPattern(bound *slots) (p kg.IDPattern) {
	for i, id := range quadParts((*kg.IDQuad)(&p)) {
		at := t.nodes[i]
		if *id = at.id; at.slot >= 0 && bound.has(at.slot) {
			*id = anyID
		}
	}
	if t.oneOf != nil {
		p.Object = t.oneOf[0]
	}
	return p
}

// selectsObjects reports whether a scan of the pattern, one of the triple, reads the triple's objects
// only: the index has them in order.
func (t *boundTriple) selectsObjects(p kg.IDPattern) bool {
	return t.objects != nil && kg.HasObjectOrder(p)
}

// sortSlot returns the slot of the variable by which the triple's rows are sorted,
// -1 if there is none.
func (t *boundTriple) sortSlot(bound *slots) int {
	if t.oneOf != nil || t.dead {
		return -1
	}
	p := t.indexPattern(bound)
	q := kg.IDQuad(p)
	if t.bindsTwice(bound) {
		return -1
	}
	ids := quadParts(&q)
	for _, letter := range p.Order() {
		i := positionOf(letter)
		if !ids[i].IsZero() {
			continue
		}
		return t.nodes[i].slot
	}
	return -1
}

// bindsTwice reports whether one unbound variable occurs in two positions.
func (t *boundTriple) bindsTwice(bound *slots) bool {
	for i, a := range t.nodes {
		for _, b := range t.nodes[:i] {
			if a.slot >= 0 && a.slot == b.slot && !bound.has(a.slot) {
				return true
			}
		}
	}
	return false
}

func positionOf(letter rune) int {
	switch letter {
	case 'S':
		return subjectPos
	case 'P':
		return predicatePos
	case 'O':
		return objectPos
	}
	return graphPos
}

// mergePosition reports whether slot is the only unbound variable of the triple, and
// its position. The rows of the triple are then sorted by it.
func (t *boundTriple) mergePosition(slot int, bound *slots) (at int, ok bool) {
	if t.path != nil || t.dead || t.sortSlot(bound) != slot {
		return 0, false
	}
	for i, p := range t.nodes {
		switch {
		case p.slot == slot:
			at = i
		case p.slot >= 0 && !bound.has(p.slot), p.slot < 0 && p.id.IsZero() && i != graphPos:
			return 0, false
		}
	}
	return at, true
}

func (g *groupPlanner) addUnion(x element) error {
	rows, _, err := g.estimateElement(x, &g.bound)
	if err != nil {
		return err
	}
	s := &step{kind: unionStep}
	for _, alternative := range x.union {
		inner, err := g.planner.planGroup(alternative, g.bound)
		if err != nil {
			return err
		}
		s.groups = append(s.groups, inner)
	}
	g.bound.addAll(&x.binds)
	g.rows *= rows
	g.addStep(s)
	return nil
}

// addConditions adds the filters and NotExists with variables that no longer change,
// or all remaining ones.
func (g *groupPlanner) addConditions(all bool) {
	for i, f := range g.scope.filters {
		if !g.filterDone[i] && (all || f.open.isSubsetOf(&g.bound)) {
			g.filterDone[i] = true
			g.addStep(&step{kind: filterStep, filter: f})
		}
	}
	for i, n := range g.scope.absent {
		if !g.absentDone[i] && (all || n.open.isSubsetOf(&g.bound)) {
			g.absentDone[i] = true
			g.addStep(&step{kind: absentStep, absent: n})
		}
	}
}

func (g *groupPlanner) addMerges() {
	for _, m := range g.scope.merges {
		g.addStep(&step{kind: mergeStep, merge: m})
	}
}
