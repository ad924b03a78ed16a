package pattern

import (
	"slices"

	"koine/internal/query/valuespace"
	"koine/internal/query/valuewalk"
	"koine/kg"
)

// Ordered rows of which the first are wanted need not all be found where the index has the order
// of the first variable: an ordered scan reads the triple that binds it in that order, and the
// evaluation ends with the rows. It gives up where it would read more than it saves; all rows are
// found and sorted then. Both return the same rows in the same order, because rows that are equal
// in all keys are in the order of their ids.

// Bounds of an ordered scan.
const (
	// leastSorted is the number of expected rows up to which all are sorted.
	leastSorted = 1024
	// orderedShare is the part of the rows that the other plan is expected to pass on, of which an
	// ordered scan reads at most as many statements.
	orderedShare = 8
)

// orderedScan is a plan that begins with an ordered scan.
type orderedScan struct {
	plan    *plan
	planner *planner
	walk    *valuewalk.Walk
	most    int   // statements of the walk to read
	mostAll int64 // statements to read in all
}

// planOrderedScan plans an ordered scan. It returns nil if there is none, or none that pays.
func (e *Evaluation) planOrderedScan(root *scope) (*orderedScan, error) {
	if len(e.keys) == 0 || e.query.First == 0 || !e.query.Order[0].ByValue || len(e.query.Bound) > 0 {
		return nil, nil
	}
	snapshot := e.machine.snapshot
	if _, limited := snapshot.ReadsLeft(); limited {
		return nil, nil
	}
	t := root.orderedTriple(e.keys[0])
	if t == nil {
		return nil, nil
	}
	expected, err := e.expectedRows()
	if err != nil || expected <= leastSorted {
		return nil, err
	}
	walk, err := valuewalk.New(snapshot, t.nodes[predicatePos].id, e.query.Order[0].Descending, nil)
	if err != nil || walk == nil {
		return nil, err
	}
	by := &planner{builder: e.planner.builder, estimator: e.planner.estimator}
	by.choose = func(elements []element, bound slots) ([]int, error) { return by.orderBehind(t, elements, bound) }
	p, err := by.planGroup(root, slots{})
	if err != nil {
		return nil, err
	}
	s := p.steps[0]
	s.walked, s.ranged = true, false
	expected = min(expected, 1<<30)
	return &orderedScan{p, by, walk, int(expected)/orderedShare + leastSorted, int64(expected) + leastSorted}, nil
}

// orderedTriple returns a triple of the group that binds the slot as its object, and that an
// ordered scan can begin with.
func (s *scope) orderedTriple(slot int) *boundTriple {
	for _, f := range s.filters {
		if f.open == (slots{}) {
			return nil // the plan begins with a condition
		}
	}
	for _, n := range s.absent {
		if n.open == (slots{}) {
			return nil
		}
	}
	for _, t := range s.triples {
		subject, predicate := t.nodes[subjectPos], t.nodes[predicatePos]
		if t.nodes[objectPos].slot == slot && t.path == nil && !t.dead && predicate.slot < 0 && !predicate.id.IsZero() &&
			subject.slot >= 0 && subject.slot != slot && t.nodes[graphPos].slot != slot && t.nodes[graphPos].slot != subject.slot {
			return t
		}
	}
	return nil
}

// expectedRows returns the number of rows that the steps of the plan are expected to pass on.
func (e *Evaluation) expectedRows() (rows float64, err error) {
	for i, s := range e.plan.steps {
		n := s.estimate
		if i == 0 && s.kind == scanStep { // it reads the statements that merged triples leave out too
			if n, err = e.planner.estimator.countTerms(s.triple); err != nil {
				return 0, err
			}
		}
		rows += n
	}
	return rows, nil
}

// orderBehind orders the elements of a group. If t is one of them it is the first.
func (p *planner) orderBehind(t *boundTriple, elements []element, bound slots) ([]int, error) {
	first := slices.IndexFunc(elements, func(x element) bool { return x.triple == t })
	if first < 0 {
		return p.joinOrder(elements, bound)
	}
	bound.addAll(&t.variables)
	order, err := p.joinOrder(slices.Delete(slices.Clone(elements), first, first+1), bound)
	for k, i := range order {
		if i >= first {
			order[k]++
		}
	}
	return slices.Insert(order, 0, first), err
}

// collectOrdered collects the rows of the ordered scan. ok is false, and kept is empty, if that
// takes more statements than it may read.
func (e *Evaluation) collectOrdered(kept *rowBuffer, end *rowOp) (ok bool, err error) {
	m, read, made, limits := e.machine, e.machine.read, e.machine.made, e.machine.limits
	m.limits.Statements = min(limits.Statements, read+e.ordered.mostAll)
	scan := &walkOp{evaluation: e, walk: e.ordered.walk, kept: kept, most: e.ordered.most}
	first := m.linkPlan(e.ordered.plan, end, e.ordered.planner)
	scan.scan = first.(*scanOp)
	scan.processRow()
	if m.limits = limits; kg.CodeOf(m.err) == kg.CodeLimitExceeded {
		m.err, scan.whole = nil, false
	}
	if m.err != nil || scan.whole {
		return true, m.err
	}
	m.read, m.made = read, made
	m.row = make([]kg.ID, len(m.row))
	*kept = rowBuffer{}
	return false, nil
}

// walkOp runs the first scan of a plan in the order of a walk. It ends with the rows that the
// query wants and those that the order does not tell from the last of them.
type walkOp struct {
	evaluation *Evaluation
	scan       *scanOp
	walk       *valuewalk.Walk
	kept       *rowBuffer
	most       int  // statements to read
	whole      bool // kept has all rows that may be wanted
}

func (o *walkOp) processRow() bool {
	m, t := o.evaluation.machine, o.scan.step.triple
	o.scan.step.runs++
	o.scan.findFree()
	wanted := o.evaluation.wantedRows()
	var last valuespace.Value
	var before kg.IDQuad
	for n := 0; ; n++ {
		row, more, err := o.walk.Next()
		if m.err = err; err != nil {
			return false
		}
		if !more {
			o.whole = o.walk.Complete()
			return true
		}
		if n > 0 && o.kept.n >= wanted && row.Value.Order(last) != 0 {
			o.whole = true
			return true
		}
		if n == o.most {
			return true
		}
		if last = row.Value; !m.countStatement(o.scan.step) || !m.countSeek() {
			return false
		}
		q := row.IDQuad
		if graph := t.nodes[graphPos].id; !graph.IsZero() && q.Graph != graph {
			continue
		}
		if t.anyGraph && q.Object == before.Object && q.Subject == before.Subject {
			continue
		}
		if before = q; !o.scan.emitRow(&q, false) {
			return false
		}
	}
}
