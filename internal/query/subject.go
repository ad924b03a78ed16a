package query

import (
	"iter"

	"koine/kg"
)

// subject is an entity under test with its gathered statements.
type subject struct {
	snapshot *kg.Snapshot
	id       kg.ID
	name     kg.Term
	// rows are the statements with the wanted predicates, by their index.
	rows [][]kg.Row
	scan *entityScan
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

// subjectGatherer gathers the rows of one subject at a time.
type subjectGatherer struct {
	*Gatherer
	s *subject
}

func gatherSubjects(s *kg.Snapshot, w *Wanted) *subjectGatherer {
	g := &subjectGatherer{}
	g.Gatherer = NewGatherer(s, w, func(i int, row *kg.Row) error {
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
	return g.Gather(id)
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
func allSubjects(s *kg.Snapshot, w *Wanted, after *kg.ID) iter.Seq2[*subject, error] {
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
