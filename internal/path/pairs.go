package path

import (
	"iter"
	"slices"

	"koine/kg"
)

// Pair is two nodes that a path relates.
type Pair struct{ From, To kg.ID }

// pairStarts is how many nodes Pairs follows the path from at once.
const pairStarts = 1024

// Pairs yields all pairs that the path relates, each once: grouped by one of the
// ends where the path is short, in no order that means anything. A path that may
// have no step relates every node that the view shows with itself, so that all
// statements are read.
func (b *Bound) Pairs() iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		a, backwards := &b.forward, false
		n, err := b.startCost(a)
		if err == nil && !b.path.Nullable() {
			var m uint64
			if m, err = b.startCost(&b.backward); m < n {
				a, backwards = &b.backward, true
			}
		}
		var starts []kg.ID
		if err == nil {
			starts, err = b.starts(a)
		}
		if err != nil {
			yield(Pair{}, err)
			return
		}
		for chunk := range slices.Chunk(starts, pairStarts) {
			for end, err := range b.walk(a, chunk) {
				if err != nil {
					yield(Pair{}, err)
					return
				}
				p := Pair{chunk[end.Start], end.ID}
				if backwards {
					p.From, p.To = p.To, p.From
				}
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// startCost is about how many statements can be the first step.
func (b *Bound) startCost(a *boundAutomaton) (sum uint64, err error) {
	for _, m := range a.states[0].moves {
		n, err := b.count(&a.labels[m.label])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// starts are the nodes from which there is a first step, in order; all nodes for
// a path that needs none.
func (b *Bound) starts(a *boundAutomaton) ([]kg.ID, error) {
	found := map[kg.ID]struct{}{}
	if a.states[0].accepts {
		if err := b.collect(&boundLabel{}, found); err != nil {
			return nil, err
		}
		if err := b.collect(&boundLabel{inverse: true}, found); err != nil {
			return nil, err
		}
	} else {
		for _, m := range a.states[0].moves {
			if err := b.collect(&a.labels[m.label], found); err != nil {
				return nil, err
			}
		}
	}
	out := make([]kg.ID, 0, len(found))
	for id := range found {
		out = append(out, id)
	}
	slices.SortFunc(out, compareIDs)
	return out, nil
}

// collect adds the near ends of all statements with the label.
func (b *Bound) collect(l *boundLabel, found map[kg.ID]struct{}) error {
	if l.dead {
		return nil
	}
	var last kg.ID
	for row, err := range b.snapshot.MatchIDs(kg.IDPattern{Predicate: l.one, Graph: b.graph}, nil) {
		if err == nil {
			err = b.charge()
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
		found[near] = struct{}{}
		if len(found) > b.nodes {
			return tooManyNodes(b.nodes)
		}
	}
	return nil
}
