package path

import (
	"iter"
	"slices"

	"koine/kg"
)

// Pair is two nodes that a path relates.
type Pair struct{ From, To kg.ID }

// minStarts and maxStarts bound the number of starts that Pairs follows at once: few
// at first, so that the first pairs come soon, and fewer again if the search is so
// wide that it exceeds Options.Nodes.
const (
	minStarts = 16
	maxStarts = 1024
)

// Pairs yields all pairs that the path relates, each once, in no particular order, which
// depends on the end that it starts from (ChooseSide). A path that may have length zero relates
// every node in view to itself and reads all statements.
func (b *Bound) Pairs() iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		err := b.yieldPairs(func(p Pair) bool { return yield(p, nil) })
		if err != nil && err != errSearchStopped {
			yield(Pair{}, err)
		}
	}
}

func (b *Bound) yieldPairs(yield func(Pair) bool) error {
	a, backwards := &b.forward, b.start == backwardSide
	if b.start == unknownSide {
		var err error
		if backwards, err = b.ChooseSide(); err != nil {
			return err
		}
	}
	if backwards {
		a = &b.backward
	}
	starts, most := make([]kg.ID, 0, maxStarts), minStarts
	flush := func() error {
		var err error
		most, err = b.pairsFrom(a, starts, most, func(from, to kg.ID) bool {
			if backwards {
				from, to = to, from
			}
			return yield(Pair{from, to})
		})
		starts = starts[:0]
		return err
	}
	for id, err := range b.startNodes(a) {
		if err != nil {
			return err
		}
		if starts = append(starts, id); len(starts) >= most {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// startSide is the end from which Pairs starts.
type startSide uint8

const (
	unknownSide startSide = iota
	forwardSide
	backwardSide
)

// SetSide makes Pairs start from the ends of paths, or from their beginnings. Otherwise it starts
// where ChooseSide says.
func (b *Bound) SetSide(backwards bool) {
	if b.start = forwardSide; backwards {
		b.start = backwardSide
	}
}

// ChooseSide chooses the end from which Pairs starts: the one with nodes in index order, or else
// the one with fewer first steps by the statements that there are now. backwards is true for the
// ends of paths. SetSide with it makes another Bound yield the pairs in the same order.
func (b *Bound) ChooseSide() (backwards bool, err error) {
	forward, err := b.startCost(&b.forward)
	if err != nil || b.path.Nullable() {
		return false, err
	}
	backward, err := b.startCost(&b.backward)
	if ordered := b.backward.startsOrdered(); ordered != b.forward.startsOrdered() {
		// Saved memory is worth a few times as many steps.
		if ordered {
			backward /= 4
		} else {
			forward /= 4
		}
	}
	return backward < forward, err
}

// startsOrdered reports whether the index returns the first nodes in order: the objects of
// one predicate.
func (a *boundAutomaton) startsOrdered() bool {
	moves := a.states[0].moves
	if len(moves) != 1 || a.states[0].accepts {
		return false
	}
	l := &a.labels[moves[0].label]
	return l.inverse && l.one != (kg.ID{})
}

// pairsFrom yields the pairs of the given starts, at most that many starts at a time.
// It returns the number for the next call.
func (b *Bound) pairsFrom(a *boundAutomaton, starts []kg.ID, most int, yield func(from, to kg.ID) bool) (int, error) {
	var ends []End
	for len(starts) > 0 {
		chunk := starts[:min(most, len(starts))]
		ends = ends[:0]
		w := b.newSearch(a, func(e End, _ error) bool { ends = append(ends, e); return true })
		switch err := w.run(chunk); {
		case err == errSearchTooWide && len(chunk) > 1:
			most = len(chunk) / 2
			continue
		case err == errSearchTooWide:
			return most, tooManyNodes(b.nodes)
		case err != nil:
			return most, err
		}
		for _, e := range ends {
			if !yield(chunk[e.Start], e.ID) {
				return most, errSearchStopped
			}
		}
		starts = starts[len(chunk):]
		if len(chunk) == most && len(w.seen)+len(w.ends) < b.nodes/8 {
			most = min(2*most, maxStarts)
		}
	}
	return most, nil
}

// startCost estimates the number of statements that match the first step.
func (b *Bound) startCost(a *boundAutomaton) (sum uint64, err error) {
	for _, m := range a.states[0].moves {
		n, err := b.countStatements(&a.labels[m.label])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// startNodes yields the nodes that have a first step, each once; for a path that may have
// length zero, all nodes. Nodes that the index does not return in order are collected
// first, at most as many as are read.
func (b *Bound) startNodes(a *boundAutomaton) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		if a.startsOrdered() {
			l := &a.labels[a.states[0].moves[0].label]
			if err := b.collectStarts(l, func(id kg.ID) bool { return yield(id, nil) }); err != nil {
				yield(kg.ID{}, err)
			}
			return
		}
		labels := []*boundLabel{{}, {inverse: true}}
		if !a.states[0].accepts {
			labels = labels[:0]
			for _, m := range a.states[0].moves {
				labels = append(labels, &a.labels[m.label])
			}
		}
		found, sorted := []kg.ID(nil), 0
		for _, l := range labels {
			err := b.collectStarts(l, func(id kg.ID) bool {
				if found = append(found, id); len(found) >= 2*sorted+maxStarts {
					found = sortDistinct(found)
					sorted = len(found)
				}
				return true
			})
			if err != nil {
				yield(kg.ID{}, err)
				return
			}
		}
		for _, id := range sortDistinct(found) {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func sortDistinct(ids []kg.ID) []kg.ID {
	slices.SortFunc(ids, kg.ID.Compare)
	return slices.Compact(ids)
}

// collectStarts yields the near ends of all statements with the label until yield returns
// false.
func (b *Bound) collectStarts(l *boundLabel, yield func(kg.ID) bool) error {
	if l.dead {
		return nil
	}
	var last kg.ID
	for row, err := range b.snapshot.MatchIDs(kg.IDPattern{Predicate: l.one, Graph: b.graph}, nil) {
		if err == nil {
			err = b.countRead()
		}
		if err != nil {
			return err
		}
		near := row.Subject
		if l.inverse {
			near = row.Object
		}
		if near == last || !l.admits(row.Predicate) {
			continue
		}
		last = near
		if !yield(near) {
			return nil
		}
	}
	return nil
}
