package graph

import (
	"bytes"
	"iter"
	"slices"

	"koine/kg"
)

// subject is an entity under test or being loaded, with its gathered
// statements.
type subject struct {
	snapshot *kg.Snapshot
	id       kg.ID
	name     kg.Term
	// rows are the statements with the wanted predicates, by their index.
	rows [][]kg.Row
	scan *entityScan // of an entity under test
}

func (s *subject) entityTerm() (kg.Term, error) {
	if s.name.IsZero() {
		t, err := s.snapshot.Term(s.id)
		if err != nil {
			return t, err
		}
		s.name = t
	}
	return s.name, nil
}

// wantedPredicates are the predicates to gather, sorted by id.
type wantedPredicates struct {
	ids   []kg.ID
	index []int // index of the rows, for each id
	n     int   // number of predicates requested
}

// resolvePredicates finds the ids of predicates. Predicates without an id have no rows.
func resolvePredicates(predicates []kg.Term, find func(kg.Term) (id kg.ID, known bool, err error)) (w wantedPredicates, err error) {
	w.n = len(predicates)
	for i, p := range predicates {
		id, known, err := find(p)
		if err != nil {
			return w, err
		}
		if !known {
			continue
		}
		at, _ := slices.BinarySearchFunc(w.ids, id, compareIDs)
		w.ids = slices.Insert(w.ids, at, id)
		w.index = slices.Insert(w.index, at, i)
	}
	return w, nil
}

func compareIDs(a, b kg.ID) int { return bytes.Compare(a[:], b[:]) }

// rowIndex returns the index of a predicate's rows, -1 if it is not wanted.
func (w *wantedPredicates) rowIndex(predicate kg.ID) int {
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

// gatherer reads the statements with wanted predicates of a sequence of
// subjects, in one walk over the index if they come in order.
type gatherer struct {
	sweep *kg.Sweep
	wants *wantedPredicates
	// each is called for each statement with a wanted predicate, in the order
	// of the index. The row is valid during the call.
	each func(wanted int, row *kg.Row) error
}

func newGatherer(s *kg.Snapshot, w *wantedPredicates, each func(wanted int, row *kg.Row) error) *gatherer {
	return &gatherer{s.Sweep(), w, each}
}

func (g *gatherer) close() { g.sweep.Close() }

// gatherSubject reads the statements of a subject.
func (g *gatherer) gatherSubject(id kg.ID) error {
	switch len(g.wants.ids) {
	case 0:
		return nil
	case 1:
		return g.gatherOne(id, g.wants.ids[0])
	}
	skipped := 0
	for g.sweep.Seek(kg.IDPattern{Subject: id}, nil); g.sweep.Next(); {
		row := g.sweep.Row()
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
	return g.sweep.Err()
}

// gatherBehind seeks each of the wanted predicates after this one.
func (g *gatherer) gatherBehind(id, predicate kg.ID) error {
	for _, p := range g.wants.ids {
		if compareIDs(p, predicate) <= 0 {
			continue
		}
		if err := g.gatherOne(id, p); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) gatherOne(id, predicate kg.ID) error {
	i := g.wants.rowIndex(predicate)
	for g.sweep.Seek(kg.IDPattern{Subject: id, Predicate: predicate}, nil); g.sweep.Next(); {
		if err := g.each(i, g.sweep.Row()); err != nil {
			return err
		}
	}
	return g.sweep.Err()
}

// subjectGatherer gathers the rows of one subject at a time.
type subjectGatherer struct {
	*gatherer
	s *subject
}

func gatherSubjects(s *kg.Snapshot, w *wantedPredicates) *subjectGatherer {
	g := &subjectGatherer{}
	g.gatherer = newGatherer(s, w, func(i int, row *kg.Row) error {
		g.s.rows[i] = append(g.s.rows[i], *row)
		return nil
	})
	return g
}

// next makes s the subject with this id, with its rows. The memory of s is
// reused, so nothing may retain its rows.
func (g *subjectGatherer) next(s *subject, id kg.ID) error {
	if s.rows == nil {
		s.rows = make([][]kg.Row, g.wants.n)
	}
	for i := range s.rows {
		s.rows[i] = s.rows[i][:0]
	}
	s.id, s.name = id, kg.Term{}
	g.s = s
	return g.gatherSubject(id)
}

// lastID is greater than all ids.
var lastID = func() (id kg.ID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// allSubjects yields each subject after `after` once, in id order, with the
// wanted statements, in one scan.
func allSubjects(s *kg.Snapshot, w *wantedPredicates, after *kg.ID) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		var from *kg.IDQuad
		if after != nil {
			from = &kg.IDQuad{Subject: *after, Predicate: lastID, Object: lastID, Graph: lastID}
		}
		var current *subject
		for row, err := range s.MatchIDs(kg.IDPattern{}, from) {
			if err != nil {
				yield(nil, err)
				return
			}
			if current == nil || row.Subject != current.id {
				if current != nil && !yield(current, nil) {
					return
				}
				current = &subject{snapshot: s, id: row.Subject, rows: make([][]kg.Row, w.n)}
			}
			if i := w.rowIndex(row.Predicate); i >= 0 {
				current.rows[i] = append(current.rows[i], row)
			}
		}
		if current != nil {
			yield(current, nil)
		}
	}
}
