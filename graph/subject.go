package graph

import (
	"bytes"
	"iter"
	"slices"

	"koine/kg"
)

// subject is an entity under test or on its way into the answer, with the
// statements that were gathered of it.
type subject struct {
	snapshot *kg.Snapshot
	id       kg.ID
	name     kg.Term
	// rows are the statements with the wanted predicates, by their index.
	rows [][]kg.Row
}

func (s *subject) term() (kg.Term, error) {
	if s.name.IsZero() {
		t, err := s.snapshot.Term(s.id)
		if err != nil {
			return t, err
		}
		s.name = t
	}
	return s.name, nil
}

// wants are predicates to gather, in the order of their ids.
type wants struct {
	ids   []kg.ID
	index []int // of each id, where its rows go
	n     int   // how many were asked for
}

// resolve finds the ids of predicates; those that the store does not know have
// no rows.
func resolve(predicates []kg.Term, find func(kg.Term) (id kg.ID, known bool, err error)) (w wants, err error) {
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

// find is where the rows of a predicate go, -1 when it is not wanted.
func (w *wants) find(predicate kg.ID) int {
	for i, id := range w.ids {
		if id == predicate {
			return w.index[i]
		}
	}
	return -1
}

// maxSkipped is how many statements of an entity are passed over before the
// wanted predicates are sought one by one: a seek costs as much as reading
// some dozens of statements.
const maxSkipped = 64

// gather reads the statements of a subject that have a wanted predicate. each
// is called in the order of the index.
func gather(s *kg.Snapshot, id kg.ID, w *wants, each func(i int, row kg.Row) error) error {
	switch len(w.ids) {
	case 0:
		return nil
	case 1:
		return gatherFrom(s, kg.IDPattern{Subject: id, Predicate: w.ids[0]}, nil, w, each)
	}
	skipped := 0
	var last kg.IDQuad
	for row, err := range s.MatchIDs(kg.IDPattern{Subject: id}, nil) {
		if err != nil {
			return err
		}
		i := w.find(row.Predicate)
		if i < 0 {
			if skipped++; skipped >= maxSkipped {
				last = row.IDQuad
				break
			}
			continue
		}
		if err := each(i, row); err != nil {
			return err
		}
	}
	if skipped < maxSkipped {
		return nil
	}
	for _, p := range w.ids {
		if compareIDs(p, last.Predicate) > 0 {
			if err := gatherFrom(s, kg.IDPattern{Subject: id, Predicate: p}, nil, w, each); err != nil {
				return err
			}
		}
	}
	return nil
}

func gatherFrom(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad, w *wants, each func(i int, row kg.Row) error) error {
	for row, err := range s.MatchIDs(p, after) {
		if err != nil {
			return err
		}
		if err := each(w.find(row.Predicate), row); err != nil {
			return err
		}
	}
	return nil
}

// gatherRows fills the subject's rows.
func (s *subject) gatherRows(w *wants) error {
	s.rows = make([][]kg.Row, w.n)
	return gather(s.snapshot, s.id, w, func(i int, row kg.Row) error {
		s.rows[i] = append(s.rows[i], row)
		return nil
	})
}

// lastID is greater than all ids.
var lastID = func() (id kg.ID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// allSubjects yields each subject behind after once, in the order of ids, with
// the wanted statements, in one scan.
func allSubjects(s *kg.Snapshot, w *wants, after *kg.ID) iter.Seq2[*subject, error] {
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
			if i := w.find(row.Predicate); i >= 0 {
				current.rows[i] = append(current.rows[i], row)
			}
		}
		if current != nil {
			yield(current, nil)
		}
	}
}
