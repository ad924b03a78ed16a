package path

import (
	"cmp"
	"slices"

	"koine/kg"
)

// Limits of Shortest.
const (
	MaxRoutes      = 100 // largest k
	MaxRouteLength = 12  // statements in one route
)

// Route is a route from one entity to another: its steps in order. A route from an
// entity to itself is empty.
type Route []Step

// Step is a statement of a route. Inverse reports that it is followed from its object
// to its subject. A statement in several graphs is one step; the row is the first one
// in index order.
type Step struct {
	kg.Row
	Inverse bool
}

// To returns the entity that the step leads to.
func (s Step) To() kg.ID {
	if s.Inverse {
		return s.Subject
	}
	return s.Object
}

func (s Step) fromNode() kg.ID {
	if s.Inverse {
		return s.Object
	}
	return s.Subject
}

func compareSteps(a, b Step) int {
	if c := cmp.Or(a.To().Compare(b.To()), a.Predicate.Compare(b.Predicate)); c != 0 || a.Inverse == b.Inverse {
		return c
	}
	if b.Inverse {
		return -1
	}
	return 1
}

// Shortest returns up to k routes from one entity to another, shortest first. Routes of
// equal length are ordered by the ids of the first entity that differs, then of the
// predicate, then by direction (forward first), so that the order is s. A route
// visits no entity twice and no literal, and has at most maxDepth statements. From an
// entity to itself there is one route, the empty one.
//
// deeper reports that no route was found and that the search stopped at maxDepth with
// statements left around both ends: a longer route may exist.
//
// The search runs from both ends. The error has CodeInvalid for an argument out of
// range, and CodeLimitExceeded if more than Edges.Statements are read or tried: a route
// may then exist although it was not found.
func Shortest(s *kg.Snapshot, from, to kg.ID, edges Edges, maxDepth, k int) (routes []Route, deeper bool, err error) {
	if k < 1 || k > MaxRoutes {
		return nil, false, kg.Errorf(kg.CodeInvalid, "k must be between 1 and %d, got %d", MaxRoutes, k).At("k")
	}
	if maxDepth < 1 || maxDepth > MaxRouteLength {
		return nil, false, kg.Errorf(kg.CodeInvalid, "maxDepth must be between 1 and %d, got %d", MaxRouteLength, maxDepth).At("maxDepth")
	}
	if !from.IsResource() || !to.IsResource() {
		return nil, false, nil
	}
	if from == to {
		return []Route{{}}, false, nil
	}
	c, err := edges.bindPredicates(s)
	if err != nil {
		return nil, false, err
	}
	x := &bidirectionalSearch{expander: c, out: map[kg.ID][]Step{}, knownSteps: map[stepKey]struct{}{}}
	x.sides[0] = newSide(from, edges.Direction)
	x.sides[1] = newSide(to, reverseDirection(edges.Direction))
	routes, err = x.findRoutes(from, to, maxDepth, k)
	more := len(x.sides[0].level) > 0 && len(x.sides[1].level) > 0
	return routes, err == nil && len(routes) == 0 && more, err
}

func reverseDirection(d Direction) Direction {
	switch d {
	case Out:
		return In
	case In:
		return Out
	}
	return Both
}

// bidirectionalSearch is a bidirectional search. Invariant: when the sides have expanded a and b
// levels, out holds every step of every route of up to a+b steps.
type bidirectionalSearch struct {
	*expander
	sides      [2]side // from the start, from the end
	out        map[kg.ID][]Step
	knownSteps map[stepKey]struct{}
}

type stepKey struct {
	subject, predicate, object kg.ID
	inverse                    bool
}

// side is the search from one end.
type side struct {
	direction Direction
	seen      map[kg.ID]struct{}
	level     []kg.ID
}

func newSide(id kg.ID, d Direction) side {
	return side{direction: d, seen: map[kg.ID]struct{}{id: {}}, level: []kg.ID{id}}
}

// findRoutes searches length by length: it completes the steps of all routes of that length
// and then lists the routes.
func (x *bidirectionalSearch) findRoutes(from, to kg.ID, maxDepth, k int) (routes []Route, err error) {
	known := 0
	for length := 1; length <= maxDepth && len(routes) < k; length++ {
		for ; known < length; known++ {
			i := 0
			if len(x.sides[1].level) < len(x.sides[0].level) {
				i = 1
			}
			if len(x.sides[i].level) == 0 {
				known = maxDepth // one end is exhausted
				break
			}
			if err := x.expandSide(i); err != nil {
				return nil, err
			}
		}
		if _, met := x.sides[0].seen[to]; !met && !x.hasMet() {
			if len(x.sides[0].level) == 0 || len(x.sides[1].level) == 0 {
				return nil, nil
			}
			continue
		}
		l := routeLister{bidirectionalSearch: x, to: to, remaining: x.distancesTo(to), on: map[kg.ID]bool{from: true}, k: k, routes: routes}
		if err := l.listFrom(from, length); err != nil {
			return nil, err
		}
		routes = l.routes
	}
	return routes, nil
}

// hasMet reports whether the sides have reached a common entity.
func (x *bidirectionalSearch) hasMet() bool {
	few, many := x.sides[0].seen, x.sides[1].seen
	if len(few) > len(many) {
		few, many = many, few
	}
	for id := range few {
		if _, ok := many[id]; ok {
			return true
		}
	}
	return false
}

// expandSide expands one side by a level.
func (x *bidirectionalSearch) expandSide(i int) error {
	sd := &x.sides[i]
	slices.SortFunc(sd.level, kg.ID.Compare)
	var next []kg.ID
	reach := func(row *kg.Row, against bool) {
		near, far := row.Subject, row.Object
		if against {
			near, far = far, near
		}
		if !far.IsResource() || near == far {
			return
		}
		// The other side runs towards the start: it follows steps backwards.
		step := Step{Row: *row, Inverse: against != (i == 1)}
		key := stepKey{row.Subject, row.Predicate, row.Object, step.Inverse}
		if _, old := x.knownSteps[key]; !old {
			x.knownSteps[key] = struct{}{}
			x.out[step.fromNode()] = append(x.out[step.fromNode()], step)
		}
		if _, old := sd.seen[far]; !old {
			sd.seen[far] = struct{}{}
			next = append(next, far)
		}
	}
	for _, against := range [...]bool{false, true} {
		if sd.direction == Out && against || sd.direction == In && !against {
			continue
		}
		err := x.eachStatement(sd.level, against, func(row *kg.Row) error {
			reach(row, against)
			return nil
		})
		if err != nil {
			return err
		}
	}
	sd.level = next
	return nil
}

// distancesTo returns the distance of each entity from the end over the known steps.
func (x *bidirectionalSearch) distancesTo(to kg.ID) map[kg.ID]int {
	into := map[kg.ID][]kg.ID{}
	for near, steps := range x.out {
		for _, s := range steps {
			into[s.To()] = append(into[s.To()], near)
		}
	}
	left := map[kg.ID]int{to: 0}
	for queue := []kg.ID{to}; len(queue) > 0; queue = queue[1:] {
		for _, near := range into[queue[0]] {
			if _, old := left[near]; !old {
				left[near] = left[queue[0]] + 1
				queue = append(queue, near)
			}
		}
	}
	return left
}

// routeLister lists the routes of one length over the known steps, depth first, pruned to
// steps from which the end is reachable.
type routeLister struct {
	*bidirectionalSearch
	to        kg.ID
	remaining map[kg.ID]int
	on        map[kg.ID]bool // entities of the current route
	way       Route
	k         int
	routes    []Route
	sorted    map[kg.ID]bool
}

func (l *routeLister) listFrom(at kg.ID, length int) error {
	if length == 0 {
		l.routes = append(l.routes, slices.Clone(l.way))
		return nil
	}
	if l.sorted == nil {
		l.sorted = map[kg.ID]bool{}
	}
	if !l.sorted[at] {
		slices.SortFunc(l.out[at], compareSteps)
		l.sorted[at] = true
	}
	for _, s := range l.out[at] {
		next := s.To()
		left, leads := l.remaining[next]
		// The last step reaches the end, and no earlier one.
		if !leads || left > length-1 || l.on[next] || next == l.to && length > 1 {
			continue
		}
		if err := l.countRead(); err != nil {
			return err
		}
		l.on[next] = true
		l.way = append(l.way, s)
		if err := l.listFrom(next, length-1); err != nil {
			return err
		}
		l.way = l.way[:len(l.way)-1]
		delete(l.on, next)
		if len(l.routes) == l.k {
			return nil
		}
	}
	return nil
}
