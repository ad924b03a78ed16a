package query

import (
	"iter"
	"slices"

	"koine/internal/query/idtable"
	"koine/kg"
)

const (
	// maxColumnRows bounds the statements that columns hold in memory.
	maxColumnRows = 2_000_000
	// columnRowsEach is the number of statements of whole properties, for each
	// entity, up to which reading these costs less than looking the entities up.
	columnRowsEach = 16
	// maxDecided bounds the cached results of one test of a value.
	maxDecided = 1 << 16
)

// columns hold the statements with the wanted predicates of many entities. They are
// read in one walk over each predicate instead of a look-up for each entity.
type columns struct {
	entities idtable.Table
	lists    []column // for each wanted predicate
}

// column has the statements with one predicate, a list for each entity.
type column struct {
	predicate   kg.ID
	first, last []uint32 // for each entity, the index in rows and one; 0: none
	rows        []columnRow
}

type columnRow struct {
	object, graph kg.ID
	next          uint32
}

// readColumns reads the columns of entities, which are in order. It returns nil if
// looking the entities up costs less, or if the columns are too large.
func (m *EntityMatch) readColumns(s *kg.Snapshot, entities []kg.ID) (*columns, error) {
	c := &columns{lists: make([]column, len(m.wanted))}
	patterns := make([]kg.IDPattern, len(m.wanted))
	var rows uint64
	for i, predicate := range m.wanted {
		p, known, err := s.PatternIDs(kg.Pattern{Predicate: predicate, Object: m.narrowed[i]})
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		n, _, err := s.Estimate(p)
		if err != nil {
			return nil, err
		}
		patterns[i] = p
		rows += n
	}
	if rows > maxColumnRows || rows > columnRowsEach*uint64(len(entities)) {
		return nil, nil
	}
	for _, id := range entities {
		c.entities.Add(id)
	}
	for i, p := range patterns {
		c.lists[i].first, c.lists[i].last = make([]uint32, len(entities)), make([]uint32, len(entities))
		if p == (kg.IDPattern{}) {
			continue
		}
		if err := c.readColumn(s, &c.lists[i], p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readColumn reads one column. In the order of the index, the statements of one
// entity are in the order in which a look-up finds them.
func (c *columns) readColumn(s *kg.Snapshot, to *column, p kg.IDPattern) error {
	to.predicate = p.Predicate
	return kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		i := c.entities.Find(q.Subject)
		if i < 0 {
			return nil
		}
		to.rows = append(to.rows, columnRow{q.Object, q.Graph, 0})
		n := uint32(len(to.rows))
		if last := to.last[i]; last == 0 {
			to.first[i] = n
		} else {
			to.rows[last-1].next = n
		}
		to.last[i] = n
		return nil
	})
}

// fillSubject sets the statements of the i-th entity.
func (c *columns) fillSubject(to *subject, i int) {
	for k := range c.lists {
		list := &c.lists[k]
		rows := to.rows[k][:0]
		for at := list.first[i]; at != 0; {
			row := &list.rows[at-1]
			rows = append(rows, kg.Row{IDQuad: kg.IDQuad{Subject: to.id, Predicate: list.predicate, Object: row.object, Graph: row.graph}})
			at = row.next
		}
		to.rows[k] = rows
	}
}

// wholeMatches is matches for callers that read all entities: it reads whole
// properties if that costs less than looking the entities up.
func (l *EntityList) wholeMatches(s *kg.Snapshot) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		for e, err := range l.Match.wholeCandidates(s) {
			ok := false
			if err == nil {
				ok, err = l.Match.matchesEntity(e)
			}
			if (ok || err != nil) && (!yield(e, err) || err != nil) {
				return
			}
		}
	}
}

// wholeCandidates is scanCandidates for callers that read all entities.
func (m *EntityMatch) wholeCandidates(s *kg.Snapshot) iter.Seq2[*subject, error] {
	if !readsRuns(s) {
		return scanCandidates(s, m, nil, true)
	}
	return func(yield func(*subject, error) bool) {
		d, ids, err := m.chooseAccessPath(s, nil, true)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case d == nil:
			m.scanAll(s, nil, yield)
			return
		case len(d.iris) > 0 || d.path != nil:
			m.readCandidates(s, d, ids, yield)
			return
		}
		entities, err := d.collectCandidates(s, ids)
		var c *columns
		if err == nil {
			c, err = m.readColumns(s, entities)
		}
		switch {
		case err != nil:
			yield(nil, err)
		case c == nil:
			m.readCandidates(s, d, allIDs(entities), yield)
		default:
			m.yieldColumns(s, c, entities, yield)
		}
	}
}

func allIDs(list []kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		for _, id := range list {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// collectCandidates returns the ids of the access path's entities in order.
func (d *accessPath) collectCandidates(s *kg.Snapshot, ids iter.Seq2[kg.ID, error]) (list []kg.ID, err error) {
	if d.object.IsZero() {
		for id, err := range ids {
			if err != nil {
				return nil, err
			}
			list = append(list, id)
		}
		return list, nil
	}
	p, known, err := s.PatternIDs(kg.Pattern{Predicate: d.predicates[0], Object: d.object})
	if !known || err != nil {
		return nil, err
	}
	err = kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		if n := len(list); n == 0 || list[n-1] != q.Subject {
			list = append(list, q.Subject)
		}
		return nil
	})
	return list, err
}

// yieldColumns yields the entities with their statements of the columns.
func (m *EntityMatch) yieldColumns(s *kg.Snapshot, c *columns, entities []kg.ID, yield func(*subject, error) bool) {
	scan := newEntityScan(s)
	defer scan.close()
	scan.decided = make([]map[kg.ID]bool, m.valueTests)
	one := &subject{snapshot: s, scan: scan, rows: make([][]kg.Row, len(m.wanted))}
	for i, id := range entities {
		if i%maxSkipped == 0 {
			if err := s.Err(); err != nil {
				yield(nil, err)
				return
			}
		}
		one.id, one.name = id, kg.Term{}
		c.fillSubject(one, i)
		if !yield(one, nil) {
			return
		}
	}
}

// valueFits reports whether the value of a statement meets the test with a number.
// Results are cached in scans that test many entities.
func (s *subject) valueFits(number int, test termTest, object kg.ID) (bool, error) {
	var known map[kg.ID]bool
	if s.scan.decided != nil {
		if known = s.scan.decided[number]; known == nil {
			known = map[kg.ID]bool{}
			s.scan.decided[number] = known
		}
		if fits, ok := known[object]; ok {
			return fits, nil
		}
	}
	if err := s.snapshot.Err(); err != nil { // a test may take long
		return false, err
	}
	t, err := s.snapshot.Term(object)
	if err != nil {
		return false, err
	}
	fits := test(t)
	if known != nil && len(known) < maxDecided {
		known[object] = fits
	}
	return fits, nil
}

// onlyOf notes that of the statements with a wanted predicate only those with one
// object are needed. It returns the predicate's index.
func (m *EntityMatch) onlyOf(predicate, object kg.Term) int {
	i := slices.Index(m.wanted, predicate)
	if i < 0 {
		i = m.wantPredicate(predicate)
		m.narrowed[i] = object
	} else if m.narrowed[i] != object {
		m.narrowed[i] = kg.Term{}
	}
	return i
}
