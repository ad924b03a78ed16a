package query

import (
	"slices"

	"koine/kg"
)

// Wanted are the predicates to gather, sorted by id.
type Wanted struct {
	ids   []kg.ID
	index []int // index of the rows, for each id
	n     int   // number of predicates requested
}

// ResolveWanted finds the ids of predicates. Predicates without an id have no rows.
func ResolveWanted(predicates []kg.Term, find func(kg.Term) (id kg.ID, known bool, err error)) (w Wanted, err error) {
	w.n = len(predicates)
	for i, p := range predicates {
		id, known, err := find(p)
		if err != nil {
			return w, err
		}
		if !known {
			continue
		}
		at, _ := slices.BinarySearchFunc(w.ids, id, kg.ID.Compare)
		w.ids = slices.Insert(w.ids, at, id)
		w.index = slices.Insert(w.index, at, i)
	}
	return w, nil
}

// rowIndex returns the index of a predicate's rows, -1 if it is not wanted.
func (w *Wanted) rowIndex(predicate kg.ID) int {
	for i, id := range w.ids {
		if id == predicate {
			return w.index[i]
		}
	}
	return -1
}

// maxSkipped is the number of an entity's statements skipped before the wanted
// predicates are sought one by one: a seek costs as much as reading some
// dozens of statements.
const maxSkipped = 64

// Gatherer reads the statements with wanted predicates of a sequence of
// subjects, in one walk over the index if they come in order.
type Gatherer struct {
	Sweep *kg.Sweep // may be moved between two calls of Gather
	wants *Wanted
	// each is called for each statement with a wanted predicate, in the order
	// of the index. The row is valid during the call.
	each func(wanted int, row *kg.Row) error
}

// NewGatherer returns a gatherer that calls each.
func NewGatherer(s *kg.Snapshot, w *Wanted, each func(wanted int, row *kg.Row) error) *Gatherer {
	return &Gatherer{s.Sweep(), w, each}
}

// Close ends the walk.
func (g *Gatherer) Close() { g.Sweep.Close() }

// Gather reads the statements of a subject.
func (g *Gatherer) Gather(id kg.ID) error {
	switch len(g.wants.ids) {
	case 0:
		return nil
	case 1:
		return g.gatherOne(id, g.wants.ids[0])
	}
	skipped := 0
	for g.Sweep.Seek(kg.IDPattern{Subject: id}, nil); g.Sweep.Next(); {
		row := g.Sweep.Row()
		i := g.wants.rowIndex(row.Predicate)
		if i < 0 {
			if skipped++; skipped >= maxSkipped {
				return g.gatherBehind(row.Subject, row.Predicate)
			}
			continue
		}
		if err := g.each(i, row); err != nil {
			return err
		}
	}
	return g.Sweep.Err()
}

// gatherBehind seeks each of the wanted predicates after this one.
func (g *Gatherer) gatherBehind(id, predicate kg.ID) error {
	for _, p := range g.wants.ids {
		if p.Compare(predicate) <= 0 {
			continue
		}
		if err := g.gatherOne(id, p); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gatherer) gatherOne(id, predicate kg.ID) error {
	i := g.wants.rowIndex(predicate)
	for g.Sweep.Seek(kg.IDPattern{Subject: id, Predicate: predicate}, nil); g.Sweep.Next(); {
		if err := g.each(i, g.Sweep.Row()); err != nil {
			return err
		}
	}
	return g.Sweep.Err()
}
