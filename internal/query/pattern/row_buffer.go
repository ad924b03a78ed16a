package pattern

import (
	"cmp"
	"slices"

	"koine/kg"
)

// rowSet is a set of rows, compared by some of their columns.
type rowSet struct {
	columns []int
	maxRows int
	seen    map[string]struct{}
	key     []byte
	row     Row // reused result of add
}

func newRowSet(columns []int, most int) *rowSet {
	return &rowSet{columns: columns, maxRows: most, seen: map[string]struct{}{}}
}

// add adds a row and reports whether it is new. shown has only the set's columns.
func (s *rowSet) add(r Row) (shown Row, isNew bool, err error) {
	s.key = s.key[:0]
	for _, c := range s.columns {
		s.key = append(s.key, r[c][:]...)
	}
	if _, there := s.seen[string(s.key)]; there {
		return nil, false, nil
	}
	if len(s.seen) == s.maxRows {
		return nil, false, tooManyBuffered(s.maxRows)
	}
	s.seen[string(s.key)] = struct{}{}
	if s.row == nil {
		s.row = make(Row, len(r))
	}
	clear(s.row)
	for _, c := range s.columns {
		s.row[c] = r[c]
	}
	return s.row, true, nil
}

// truncateAt is the number of rows that are collected before rows beyond the limit are
// dropped.
const truncateAt = 16 << 10

// rowBuffer holds rows. Rows are in order of arrival or, after truncation, in
// the order of the query.
type rowBuffer struct {
	ids []kg.ID
	n   int
}

// yieldOrdered yields the rows in order, behind the cursor. It holds all rows in
// memory, or as many as Query.First requires.
func (e *Evaluation) yieldOrdered(yield func(Row, error) bool) {
	width := len(e.pattern.names)
	var kept rowBuffer
	end := &rowOp{evaluation: e, all: true}
	end.yield = func(r Row) bool {
		if e.machine.err = e.makeRoom(&kept); e.machine.err != nil {
			return false
		}
		kept.n++
		kept.ids = append(kept.ids, r...)
		return true
	}
	err := e.collectRows(&kept, end)
	var order []int
	if err == nil {
		order, err = e.sortRows(kept.ids, kept.n)
	}
	if err != nil {
		yield(nil, err)
		return
	}
	for _, i := range order[min(e.skip, uint64(kept.n)):] {
		e.returned++
		if !yield(kept.ids[i*width:(i+1)*width:(i+1)*width], nil) {
			return
		}
	}
}

// collectRows collects the rows to sort: by an ordered scan if that suffices.
func (e *Evaluation) collectRows(kept *rowBuffer, end *rowOp) error {
	forget := func() {
		if e.query.Distinct {
			end.seen = newRowSet(e.columns, e.machine.limits.BufferedRows)
		}
	}
	forget()
	if e.ordered != nil {
		if whole, err := e.collectOrdered(kept, end); whole || err != nil {
			e.plan = e.ordered.plan
			return err
		}
		forget()
	}
	e.run(end)
	return e.machine.err
}

// wantedRows returns how many rows of the order the caller may read, with those before the cursor.
func (e *Evaluation) wantedRows() int {
	return int(min(e.skip, uint64(e.machine.limits.BufferedRows))) + e.query.First
}

// makeRoom makes room for one more row. If the query reads a limited number of rows,
// it drops those beyond the limit from time to time.
func (e *Evaluation) makeRoom(kept *rowBuffer) error {
	most, asked := e.machine.limits.BufferedRows, kept.n
	if e.query.First > 0 {
		asked = e.wantedRows()
	}
	if kept.n < most && (asked >= kept.n/2 || kept.n < truncateAt) {
		return nil
	}
	if asked >= kept.n {
		return tooManyBuffered(most)
	}
	order, err := e.sortRows(kept.ids, kept.n)
	if err != nil {
		return err
	}
	width := len(e.pattern.names)
	ids := make([]kg.ID, 0, cap(kept.ids))
	for _, i := range order[:asked] {
		ids = append(ids, kept.ids[i*width:(i+1)*width]...)
	}
	kept.ids, kept.n = ids, asked
	return nil
}

// sortRows returns the indexes of the rows in order. The order does not depend on that in which
// they were found, so that each page may be found in another way. Each distinct value of a column
// is decoded and ranked once; rows then compare by rank.
func (e *Evaluation) sortRows(kept []kg.ID, n int) ([]int, error) {
	width := len(e.pattern.names)
	ranks := make([]map[kg.ID]int, len(e.keys))
	for k, column := range e.keys {
		terms := map[kg.ID]kg.Term{}
		for i := range n {
			id := kept[i*width+column]
			if _, there := terms[id]; there {
				continue
			}
			var t kg.Term
			if !id.IsZero() {
				var err error
				if t, err = e.machine.snapshot.Term(id); err != nil {
					return nil, err
				}
			}
			terms[id] = t
		}
		ranks[k] = rankTerms(terms, e.query.Order[k].Compare)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		a, b = a*width, b*width
		for k, column := range e.keys {
			if c := cmp.Compare(ranks[k][kept[a+column]], ranks[k][kept[b+column]]); c != 0 {
				return c
			}
		}
		return slices.CompareFunc(kept[a:a+width], kept[b:b+width], kg.ID.Compare)
	})
	return order, nil
}

// rankTerms numbers ids by the order of their terms. Equal terms get the same number.
func rankTerms(terms map[kg.ID]kg.Term, compare func(a, b kg.Term) int) map[kg.ID]int {
	ids := make([]kg.ID, 0, len(terms))
	for id := range terms {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, kg.ID.Compare)
	slices.SortStableFunc(ids, func(a, b kg.ID) int { return compare(terms[a], terms[b]) })
	ranks := make(map[kg.ID]int, len(ids))
	for i, id := range ids {
		ranks[id] = i
		if i > 0 && compare(terms[ids[i-1]], terms[id]) == 0 {
			ranks[id] = ranks[ids[i-1]]
		}
	}
	return ranks
}
