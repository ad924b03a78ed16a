package pattern

import (
	"slices"

	"koine/internal/query/idtable"
	"koine/kg"
)

// leapPlan is a set of triples with variables that form cycles, such as a triangle. Joined one
// triple after the other, they have many more intermediate rows than solutions. Instead
// their predicates are read into memory, and one variable after the other is bound to the
// values that all triples with it have: a worst-case optimal join.
type leapPlan struct {
	triples []*boundTriple
	slots   []int // of the variables, in the order in which they are bound
}

const (
	// maxLeapRows bounds the statements that a leapfrog join holds in memory.
	maxLeapRows = 4_000_000
	// wholeRowCost is the cost of reading a statement of a whole predicate.
	wholeRowCost = 0.04
)

// canLeap reports whether a triple can be part of a leapfrog join: a given predicate in any
// graph, between two different variables.
func (t *boundTriple) canLeap() bool {
	s, o := t.nodes[subjectPos].slot, t.nodes[objectPos].slot
	return t.path == nil && !t.dead && t.anyGraph && t.oneOf == nil && t.except == nil &&
		t.nodes[predicatePos].slot < 0 && !t.nodes[predicatePos].id.IsZero() && s >= 0 && o >= 0 && s != o
}

// addLeap adds a leapfrog join of the first elements of the order if they form a cycle,
// and if it costs less than joining them one by one. It marks its triples as merged.
func (g *groupPlanner) addLeap(elements []element, order []int) error {
	root := g.planner.anyOrder
	g.planner.anyOrder = false // groups within this one have rows to begin with
	if _, limited := g.builder.snapshot.ReadsLeft(); !root || limited || !kg.WalksKeys(g.builder.snapshot) {
		return nil
	}
	var leading []*boundTriple
	for _, i := range order {
		if t := elements[i].triple; t != nil && t.canLeap() {
			leading = append(leading, t)
			continue
		}
		break
	}
	cycle := cyclesOf(leading)
	if len(cycle) == 0 || cycle[0] != leading[0] {
		return nil
	}
	whole := 0.0
	seen := map[kg.ID]bool{}
	for _, t := range cycle {
		if id := t.nodes[predicatePos].id; !seen[id] {
			seen[id] = true
			n, err := g.estimator.countTerms(t)
			if err != nil {
				return err
			}
			whole += n
		}
	}
	first, err := g.estimator.countTerms(cycle[0])
	if err != nil {
		return err
	}
	if oneByOne := first * float64(len(cycle)-1) * seekCost; whole > maxLeapRows || whole > float64(g.limits.Statements) || whole*wholeRowCost >= oneByOne {
		return nil
	}
	for _, t := range cycle {
		rows, _, err := g.estimator.estimateTriple(t, &g.bound)
		if err != nil {
			return err
		}
		g.rows *= rows
		g.bound.addAll(&t.variables)
	}
	g.merged = append(g.merged, cycle...)
	g.addStep(&step{kind: leapStep, leap: &leapPlan{cycle, leapOrder(cycle)}})
	g.addConditions(false)
	return nil
}

// cyclesOf returns the triples that are connected with the first one after all triples are
// dropped that have a variable of their own, and nil if these are not at least three.
func cyclesOf(list []*boundTriple) []*boundTriple {
	list = slices.Clone(list)
	for {
		degrees := map[int]int{}
		for _, t := range list {
			degrees[t.nodes[subjectPos].slot]++
			degrees[t.nodes[objectPos].slot]++
		}
		n := len(list)
		list = slices.DeleteFunc(list, func(t *boundTriple) bool {
			return degrees[t.nodes[subjectPos].slot] < 2 || degrees[t.nodes[objectPos].slot] < 2
		})
		if len(list) == n {
			break
		}
	}
	if len(list) == 0 {
		return nil
	}
	near := list[0].variables
	for range list {
		for _, t := range list {
			if t.variables.intersects(&near) {
				near.addAll(&t.variables)
			}
		}
	}
	list = slices.DeleteFunc(list, func(t *boundTriple) bool { return !t.variables.intersects(&near) })
	if len(list) < 3 {
		return nil
	}
	return list
}

// leapOrder orders the variables of triples: the one in most triples first, then those that
// share most triples with the variables before them.
func leapOrder(list []*boundTriple) (order []int) {
	ends := func(t *boundTriple) [2]int { return [2]int{t.nodes[subjectPos].slot, t.nodes[objectPos].slot} }
	for {
		best, bestScore := -1, 0
		score := map[int]int{}
		for _, t := range list {
			e := ends(t)
			for i, slot := range e {
				score[slot]++
				if slices.Contains(order, e[1-i]) {
					score[slot] += len(list)
				}
			}
		}
		for _, t := range list {
			for _, slot := range ends(t) {
				if !slices.Contains(order, slot) && score[slot] > bestScore {
					best, bestScore = slot, score[slot]
				}
			}
		}
		if best < 0 {
			return order
		}
		order = append(order, best)
	}
}

// neighbours are the pairs of a predicate, by the number of one end.
type neighbours struct {
	starts []uint32 // for each number, the index of its first neighbour
	of     []uint32 // sorted for each number
}

func (n *neighbours) listOf(node uint32) []uint32 {
	return n.of[n.starts[node]:n.starts[node+1]]
}

// leapOp runs a leapfrog join.
type leapOp struct {
	m    *execution
	step *step
	next op

	numbers idtable.Table
	ids     []kg.ID
	levels  []leapLevel
	at      []uint32 // the value of the variable of each level
	steps   int
}

// leapLevel is a variable with the triples that restrict its values.
type leapLevel struct {
	slot   int
	bound  []boundEnd    // triples with a value of the other variable
	begins []*neighbours // triples with a later other variable
	others []gallop      // reused
}

// boundEnd is a triple with a value of its variable at another level.
type boundEnd struct {
	level int
	pairs *neighbours
}

// gallop is a position in a sorted list.
type gallop struct{ rest []uint32 }

// reaches moves to the first element at or behind v, in steps that double, and reports
// whether it is v.
func (g *gallop) reaches(v uint32) bool {
	list := g.rest
	n := 1
	for n < len(list) && list[n] < v {
		n *= 2
	}
	from := n / 2
	if n == 1 {
		from = 0
	}
	i, found := slices.BinarySearch(list[from:min(n+1, len(list))], v)
	g.rest = list[from+i:]
	return found
}

func (o *leapOp) processRow() bool {
	o.step.runs++
	if o.levels == nil && !o.readPredicates() {
		return false
	}
	more := o.bindLevel(0)
	for i := range o.levels {
		o.m.row[o.levels[i].slot] = kg.ID{}
	}
	return more && o.m.err == nil
}

// bindLevel binds the variable of a level to each of its values, and the later ones. It
// returns false to stop.
func (o *leapOp) bindLevel(k int) bool {
	level := &o.levels[k]
	if len(level.bound) == 0 {
		for n := range uint32(len(o.ids)) {
			if !o.keepPace() || level.beginsAt(n) && !o.bindValue(k, n) {
				return false
			}
		}
		return true
	}
	values := level.chooseValues(o.at)
	for _, n := range values {
		if !o.keepPace() {
			return false
		}
		holds := true
		for i := range level.others {
			if holds = level.others[i].reaches(n); !holds {
				if len(level.others[i].rest) == 0 {
					return true
				}
				break
			}
		}
		if holds && level.beginsAt(n) && !o.bindValue(k, n) {
			return false
		}
	}
	return true
}

// chooseValues returns the shortest list of values, and keeps the others.
func (l *leapLevel) chooseValues(at []uint32) (values []uint32) {
	l.others = l.others[:0]
	for i, b := range l.bound {
		list := b.pairs.listOf(at[b.level])
		if i > 0 && len(list) >= len(values) {
			l.others = append(l.others, gallop{list})
			continue
		}
		if i > 0 {
			l.others = append(l.others, gallop{values})
		}
		values = list
	}
	return values
}

// beginsAt reports whether a node has neighbours in all triples with a later other
// variable.
func (l *leapLevel) beginsAt(n uint32) bool {
	for _, pairs := range l.begins {
		if pairs.starts[n] == pairs.starts[n+1] {
			return false
		}
	}
	return true
}

func (o *leapOp) bindValue(k int, n uint32) bool {
	o.at[k] = n
	o.m.row[o.levels[k].slot] = o.ids[n]
	if k+1 < len(o.levels) {
		return o.bindLevel(k + 1)
	}
	return o.m.countRow(o.step) && o.next.processRow() && o.m.err == nil
}

// leapPace is the number of values between two calls of kg.KeepPace.
const leapPace = 1 << 14

func (o *leapOp) keepPace() bool {
	if o.steps++; o.steps%leapPace == 0 {
		o.m.err = kg.KeepPace(o.m.snapshot)
		if o.m.err == nil {
			o.m.err = o.m.ctx.Err()
		}
	}
	return o.m.err == nil
}

// readPredicates reads the predicates of the triples.
func (o *leapOp) readPredicates() bool {
	plan := o.step.leap
	pairs := map[kg.ID][][2]uint32{}
	for _, t := range plan.triples {
		predicate := t.nodes[predicatePos].id
		if _, there := pairs[predicate]; there {
			continue
		}
		list, err := o.readPairs(predicate)
		if err != nil || o.m.err != nil {
			if o.m.err == nil {
				o.m.err = err
			}
			return false
		}
		pairs[predicate] = list
	}
	type side struct {
		predicate kg.ID
		inverse   bool
	}
	sorted := map[side]*neighbours{}
	o.levels = make([]leapLevel, len(plan.slots))
	o.at = make([]uint32, len(plan.slots))
	for k, slot := range plan.slots {
		o.levels[k].slot = slot
	}
	for _, t := range plan.triples {
		from, to := slices.Index(plan.slots, t.nodes[subjectPos].slot), slices.Index(plan.slots, t.nodes[objectPos].slot)
		key := side{t.nodes[predicatePos].id, from > to}
		if key.inverse {
			from, to = to, from
		}
		if sorted[key] == nil {
			sorted[key] = sortPairs(pairs[key.predicate], len(o.ids), key.inverse)
		}
		o.levels[from].begins = append(o.levels[from].begins, sorted[key])
		o.levels[to].bound = append(o.levels[to].bound, boundEnd{from, sorted[key]})
	}
	return true
}

// readPairs reads the subjects and objects of a predicate.
func (o *leapOp) readPairs(predicate kg.ID) (list [][2]uint32, err error) {
	var last kg.IDQuad
	err = kg.WalkIDs(o.m.snapshot, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if !o.m.countStatement(o.step) {
			return o.m.err
		}
		if q.Object == last.Object && q.Subject == last.Subject {
			return nil // in another graph too
		}
		last = *q
		list = append(list, [2]uint32{o.number(q.Subject), o.number(q.Object)})
		return nil
	})
	return list, err
}

func (o *leapOp) number(id kg.ID) uint32 {
	n, isNew := o.numbers.Add(id)
	if isNew {
		o.ids = append(o.ids, id)
	}
	return uint32(n)
}

// sortPairs sorts pairs by their first end, and by the other one within it: two counting
// sorts, the second of which keeps the order of the first.
func sortPairs(pairs [][2]uint32, nodes int, inverse bool) *neighbours {
	first, second := 0, 1
	if inverse {
		first, second = 1, 0
	}
	bySecond := make([][2]uint32, len(pairs))
	starts := countStarts(pairs, nodes, second)
	for _, p := range pairs {
		bySecond[starts[p[second]]] = p
		starts[p[second]]++
	}
	n := &neighbours{countStarts(pairs, nodes, first), make([]uint32, len(pairs))}
	next := slices.Clone(n.starts)
	for _, p := range bySecond {
		n.of[next[p[first]]] = p[second]
		next[p[first]]++
	}
	return n
}

// countStarts returns for each node the number of pairs with a smaller one at an end.
func countStarts(pairs [][2]uint32, nodes, end int) []uint32 {
	starts := make([]uint32, nodes+1)
	for _, p := range pairs {
		starts[p[end]+1]++
	}
	for i := range nodes {
		starts[i+1] += starts[i]
	}
	return starts
}

// Leaps reports whether the plan has a leapfrog join.
func (e *Evaluation) Leaps() bool {
	return slices.ContainsFunc(e.plan.steps, func(s *step) bool { return s.kind == leapStep })
}
