package query

import "koine/kg"

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

// subjectReader reads and tests entities by their ids. It is fast if they come in
// order.
type subjectReader struct {
	match   *EntityMatch
	gather  *Gatherer
	subject subject
	known   map[kg.ID]bool // the results of fits
}

// readSubjects begins to read entities with the statements that the test needs.
func (m *EntityMatch) readSubjects(s *kg.Snapshot) (*subjectReader, error) {
	w, err := ResolveWanted(m.wanted, s.ID)
	if err != nil {
		return nil, err
	}
	r := &subjectReader{match: m, subject: subject{snapshot: s, scan: newEntityScan(s), rows: make([][]kg.Row, w.n)}}
	r.gather = NewGatherer(s, &w, func(i int, row *kg.Row) error {
		r.subject.rows[i] = append(r.subject.rows[i], *row)
		return nil
	})
	return r, nil
}

func (r *subjectReader) close() {
	r.gather.Close()
	r.subject.scan.close()
}

// read reads an entity, which is valid until the next one.
func (r *subjectReader) read(id kg.ID) (*subject, error) {
	s := &r.subject
	for i := range s.rows {
		s.rows[i] = s.rows[i][:0]
	}
	s.id, s.name = id, kg.Term{}
	return s, r.gather.Gather(id)
}

// maxKnown bounds the cached results. Others are tested again.
const maxKnown = 1_000_000

// fits reports whether an entity matches. Each is tested once.
func (r *subjectReader) fits(id kg.ID) (bool, error) {
	if r.match.test == nil {
		return true, nil
	}
	if ok, known := r.known[id]; known {
		return ok, nil
	}
	s, err := r.read(id)
	if err != nil {
		return false, err
	}
	ok, err := r.match.test(s)
	if err == nil && len(r.known) < maxKnown {
		if r.known == nil {
			r.known = map[kg.ID]bool{}
		}
		r.known[id] = ok
	}
	return ok, err
}

// lastID is greater than all ids.
var lastID = func() (id kg.ID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// scanAll yields each subject after `after` once, in id order, with the wanted
// statements, in one scan.
func (m *EntityMatch) scanAll(s *kg.Snapshot, after *kg.ID, yield func(*subject, error) bool) {
	w, err := ResolveWanted(m.wanted, s.ID)
	if err != nil {
		yield(nil, err)
		return
	}
	scan := newEntityScan(s)
	defer scan.close()
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
			current = &subject{snapshot: s, scan: scan, id: row.Subject, rows: make([][]kg.Row, w.n)}
		}
		if i := w.rowIndex(row.Predicate); i >= 0 {
			current.rows[i] = append(current.rows[i], row)
		}
	}
	if current != nil {
		yield(current, nil)
	}
}
