package pattern

import "math"

// element is an operand of a group's join: a triple, a text or a union.
type element struct {
	triple *boundTriple
	text   *boundText
	union  []*scope
	binds  slots // slots that are certainly bound afterwards
	uses   slots // all slots that occur
}

func (s *scope) joinElements() []element {
	out := make([]element, 0, len(s.triples)+len(s.unions))
	for _, t := range s.triples {
		out = append(out, element{triple: t, binds: t.variables, uses: t.variables})
	}
	for i, u := range s.unions {
		x := element{union: u, binds: s.certain[i]}
		for _, alternative := range u {
			for _, slot := range alternative.own {
				x.uses.add(slot)
			}
			for _, m := range alternative.merges {
				x.uses.add(m.outer)
			}
		}
		out = append(out, x)
	}
	for _, t := range s.texts {
		out = append(out, element{text: t, binds: t.variables, uses: t.variables})
	}
	return out
}

// maxSearched is the largest number of elements for which all orders are
// searched. Above it, the planner is greedy.
const maxSearched = 8

// joinOrder orders the elements of a group so that intermediate results stay
// small. Elements that share no variable with the bound ones come last: they form
// a cross product.
func (e *estimator) joinOrder(elements []element, bound slots) ([]int, error) {
	switch n := len(elements); {
	case n < 2:
		return make([]int, n), nil
	case n > maxSearched:
		return e.greedyOrder(elements, bound)
	}
	s := orderSearch{estimator: e, elements: elements, bound: bound, best: make([]partialOrder, 1<<len(elements))}
	return s.run()
}

func (e *estimator) greedyOrder(elements []element, bound slots) (order []int, err error) {
	taken := make([]bool, len(elements))
	for range elements {
		best, bestCost, bestConnected := -1, 0.0, false
		for i, x := range elements {
			if taken[i] {
				continue
			}
			rows, cost, err := e.estimateElement(x, &bound)
			if err != nil {
				return nil, err
			}
			c := x.isConnected(&bound)
			if cost += rows; best < 0 || c && !bestConnected || c == bestConnected && cost < bestCost {
				best, bestCost, bestConnected = i, cost, c
			}
		}
		taken[best] = true
		order = append(order, best)
		bound.addAll(&elements[best].binds)
	}
	return order, nil
}

// isConnected reports whether the element shares a variable with the bound ones.
func (x *element) isConnected(bound *slots) bool {
	return x.uses == slots{} || x.uses.intersects(bound)
}

// orderSearch enumerates sets of elements by size (dynamic programming over left-deep
// join orders).
type orderSearch struct {
	*estimator
	elements []element
	bound    slots
	best     []partialOrder // indexed by set
}

// partialOrder is the cheapest order found for a set of elements.
type partialOrder struct {
	found      bool
	rows, cost float64
	last       int
	before     int // set without last
}

func (s *orderSearch) run() ([]int, error) {
	s.best[0] = partialOrder{found: true, rows: 1}
	all := len(s.best) - 1
	for set := range all {
		if s.best[set].found {
			if err := s.extendSet(set); err != nil {
				return nil, err
			}
		}
	}
	order := make([]int, len(s.elements))
	for k, set := len(order)-1, all; k >= 0; k-- {
		order[k] = s.best[set].last
		set = s.best[set].before
	}
	return order, nil
}

// extendSet tries to add each remaining element to a set.
func (s *orderSearch) extendSet(set int) error {
	bound, any := s.bound, false
	for i := range s.elements {
		if set&(1<<i) != 0 {
			bound.addAll(&s.elements[i].binds)
		}
	}
	for i := range s.elements {
		any = any || set&(1<<i) == 0 && s.elements[i].isConnected(&bound)
	}
	from := s.best[set]
	for i := range s.elements {
		if set&(1<<i) != 0 || any && !s.elements[i].isConnected(&bound) {
			continue
		}
		rows, cost, err := s.estimateElement(s.elements[i], &bound)
		if err != nil {
			return err
		}
		next := partialOrder{true, math.Min(from.rows*rows, 1e300), from.cost + math.Max(from.rows, 1e-3)*cost, i, set}
		into := &s.best[set|1<<i]
		if !into.found || next.cost+next.rows*rowCost < into.cost+into.rows*rowCost {
			*into = next
		}
	}
	return nil
}
