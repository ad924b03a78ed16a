package path

import (
	"cmp"
	"iter"
	"slices"

	"koine/kg"
)

// search is a breadth-first search over pairs of a state and a node, one level of
// single steps at a time.
type search struct {
	*Bound
	a     *boundAutomaton
	yield func(End, error) bool

	// frontier holds the nodes reached in each state; next is the frontier of the
	// next level.
	frontier, next [][]reached
	seen           map[visit]struct{}
	// ends are the yielded ends. They are only kept if several states accept; with
	// a single accepting state, seen suffices.
	ends map[End]struct{}
}

// reached is a node reached from a start.
type reached struct {
	id    kg.ID
	start uint32
}

type visit struct {
	reached
	state uint8
}

// searchFrom yields the ends of the automaton from the starts.
func (b *Bound) searchFrom(a *boundAutomaton, starts []kg.ID) iter.Seq2[End, error] {
	return func(yield func(End, error) bool) {
		switch err := b.newSearch(a, yield).run(starts); err {
		case nil, errSearchStopped:
		case errSearchTooWide:
			yield(End{}, tooManyNodes(b.nodes))
		default:
			yield(End{}, err)
		}
	}
}

func (b *Bound) newSearch(a *boundAutomaton, yield func(End, error) bool) *search {
	w := &search{
		Bound: b, a: a, yield: yield, seen: map[visit]struct{}{},
		frontier: make([][]reached, len(a.states)), next: make([][]reached, len(a.states)),
	}
	if a.accepting > 1 {
		w.ends = map[End]struct{}{}
	}
	return w
}

// errSearchStopped ends a search that the caller stopped.
var errSearchStopped = kg.Errorf(kg.CodeClosed, "the search was stopped")

// errSearchTooWide ends a search that exceeds Options.Nodes.
var errSearchTooWide = kg.Errorf(kg.CodeLimitExceeded, "the search is too wide")

func (w *search) run(starts []kg.ID) error {
	for i, id := range starts {
		if id == (kg.ID{}) {
			continue
		}
		if err := w.addReached(0, reached{id, uint32(i)}); err != nil {
			return err
		}
	}
	for w.nextLevel() {
		for i, group := range w.frontier {
			if len(group) == 0 {
				continue
			}
			slices.SortFunc(group, func(p, q reached) int {
				return cmp.Or(p.id.Compare(q.id), cmp.Compare(p.start, q.start))
			})
			for _, m := range w.a.states[i].moves {
				if err := w.stepAll(group, &m); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nextLevel makes next the frontier. It reports false if the frontier is empty.
func (w *search) nextLevel() bool {
	w.frontier, w.next = w.next, w.frontier
	any := false
	for i := range w.next {
		w.next[i] = w.next[i][:0]
		any = any || len(w.frontier[i]) > 0
	}
	return any
}

// addReached adds a node in a state to the search.
func (w *search) addReached(state uint8, p reached) error {
	s := &w.a.states[state]
	if len(s.moves) > 0 || w.ends == nil {
		v := visit{p, state}
		if _, old := w.seen[v]; old {
			return nil
		}
		if len(w.seen) == w.nodes {
			return errSearchTooWide
		}
		w.seen[v] = struct{}{}
		if len(s.moves) > 0 {
			w.next[state] = append(w.next[state], p)
		}
	}
	if !s.accepts {
		return nil
	}
	end := End{int(p.start), p.id}
	if w.ends != nil {
		if _, old := w.ends[end]; old {
			return nil
		}
		if len(w.ends) == w.nodes {
			return errSearchTooWide
		}
		w.ends[end] = struct{}{}
	}
	if !w.yield(end, nil) {
		return errSearchStopped
	}
	return nil
}

// stepAll follows one transition from all nodes of group, which are sorted: one pass over the
// index.
func (w *search) stepAll(group []reached, m *move) error {
	l := &w.a.labels[m.label]
	if l.dead {
		return nil
	}
	sweep := w.snapshot.Sweep()
	defer sweep.Close()
	for len(group) > 0 {
		n := 1
		for n < len(group) && group[n].id == group[0].id {
			n++
		}
		if err := w.stepFrom(sweep, l, group[:n], m.to); err != nil {
			return err
		}
		group = group[n:]
	}
	return sweep.Err()
}

// stepFrom follows one transition from one node, for all starts in group.
func (w *search) stepFrom(sweep *kg.Sweep, l *boundLabel, group []reached, to []uint8) error {
	if err := w.countRead(); err != nil {
		return err
	}
	pattern := kg.IDPattern{Subject: group[0].id, Predicate: l.one, Graph: w.graph}
	if l.inverse {
		pattern.Subject, pattern.Object = kg.ID{}, pattern.Subject
	}
	if !l.inverse && !pattern.Subject.IsResource() {
		return nil // a literal is never a subject
	}
	var last kg.ID
	for sweep.Seek(pattern, nil); sweep.Next(); {
		row := sweep.Row()
		if err := w.countRead(); err != nil {
			return err
		}
		far := row.Object
		if l.inverse {
			far = row.Subject
		}
		if far == last || !l.admits(row.Predicate) {
			continue // the same statement in another graph
		}
		last = far
		for _, p := range group {
			for _, state := range to {
				if err := w.addReached(state, reached{far, p.start}); err != nil {
					return err
				}
			}
		}
	}
	return sweep.Err()
}

// admits reports whether a statement with the predicate matches the label.
func (l *boundLabel) admits(predicate kg.ID) bool {
	if len(l.none) == 0 {
		return true
	}
	_, excluded := slices.BinarySearchFunc(l.none, predicate, kg.ID.Compare)
	return !excluded
}
