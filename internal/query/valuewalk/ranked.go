package valuewalk

import (
	"slices"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// rankedChunks reads the statements of a predicate with literals of the dictionary that are numbers,
// or moments, in the order of their values. The order of the dictionary is that of all predicates: a
// literal without a statement of this one costs a seek.
type rankedChunks struct {
	snapshot   *kg.Snapshot
	predicate  kg.ID
	descending bool
	bounds     bounds
	left       kg.RankRange // not read yet
	ended      bool
	width      uint64 // ranks that the next chunk of a descending walk spans
	many       int    // literals that are read at once

	literals [][]kg.ID  // of a chunk, in order; those of equal values together
	after    *kg.IDQuad // the last statement that was read, of the first of literals
	rows     []Row
	foreign  int
	gaveUp   bool // there are more rows than the walk reads
}

// fewRanked is the number of literals that are read first.
const fewRanked = 16

// streamRanked yields the statements of a kind of values with ranks in the range.
func streamRanked(s *kg.Snapshot, predicate kg.ID, ranks kg.RankRange, descending bool, most bounds) *rankedChunks {
	return &rankedChunks{snapshot: s, predicate: predicate, left: ranks, descending: descending, bounds: most, width: 1, many: fewRanked}
}

// nextRow returns the next statement. It returns false at the end, and after it gave up.
func (c *rankedChunks) nextRow() (row Row, more bool, err error) {
	if len(c.rows) == 0 {
		if err = c.readChunk(); err != nil || len(c.rows) == 0 {
			return row, false, err
		}
	}
	row, c.rows = c.rows[0], c.rows[1:]
	return row, true, nil
}

// readChunk reads the next rows, at most c.many.
func (c *rankedChunks) readChunk() error {
	c.rows = nil
	w := c.snapshot.Sweep()
	defer w.Close()
	most := c.many
	c.many = min(c.many*2, maxChunk)
	for len(c.rows) < most && !c.gaveUp {
		if len(c.literals) == 0 {
			if c.ended {
				return nil
			}
			if err := c.readLiterals(w); err != nil {
				return err
			}
			continue
		}
		if err := c.readRows(w, most); err != nil {
			return err
		}
	}
	return nil
}

// readRows reads the rows of the first of the literals. It keeps the place if there are more.
func (c *rankedChunks) readRows(w *kg.Sweep, most int) error {
	if len(c.literals[0]) > 1 {
		return c.readTied(w)
	}
	object := c.literals[0][0]
	w.Seek(kg.IDPattern{Predicate: c.predicate, Object: object}, c.after)
	if !w.Next() {
		if c.after == nil {
			c.passForeign()
		}
		c.literals, c.after = c.literals[1:], nil
		return w.Err()
	}
	t, err := c.snapshot.Term(object)
	if err != nil {
		return err
	}
	v := valuespace.Of(t)
	for {
		c.rows = append(c.rows, Row{v, w.Row().IDQuad})
		if len(c.rows) >= most {
			last := w.Row().IDQuad
			c.after = &last
			return nil
		}
		if !w.Next() {
			break
		}
	}
	c.literals, c.after = c.literals[1:], nil
	return w.Err()
}

// readTied reads the rows of the first of the literals, which are several of equal values, in the
// order of their ids.
func (c *rankedChunks) readTied(w *kg.Sweep) error {
	tied, err := valuesOf(c.snapshot, c.literals[0])
	if err != nil {
		return err
	}
	c.literals = c.literals[1:]
	from := len(c.rows)
	for _, l := range tied {
		for w.Seek(kg.IDPattern{Predicate: c.predicate, Object: l.id}, nil); w.Next(); {
			if len(c.rows)-from == c.bounds.ties {
				c.gaveUp = true
				c.rows = c.rows[:from]
				return nil
			}
			c.rows = append(c.rows, Row{l.value, w.Row().IDQuad})
		}
	}
	slices.SortFunc(c.rows[from:], func(a, b Row) int { return compareRows(a, b, c.descending) })
	return w.Err()
}

// addLiterals adds literals, which are in order.
func (c *rankedChunks) addLiterals(list []literal) {
	for i, l := range list {
		if n := len(c.literals); i > 0 && l.value.Order(list[i-1].value) == 0 {
			c.literals[n-1] = append(c.literals[n-1], l.id)
		} else {
			c.literals = append(c.literals, []kg.ID{l.id})
		}
	}
}

func (c *rankedChunks) passForeign() {
	if c.foreign++; c.foreign > c.bounds.foreign {
		c.gaveUp = true
	}
}

// readLiterals reads the next literals.
func (c *rankedChunks) readLiterals(w *kg.Sweep) error {
	list, err := c.nextRanked()
	if err != nil || c.gaveUp {
		return err
	}
	c.literals = c.literals[:0]
	for i := 0; i < len(list) && !c.gaveUp; {
		n := i + 1
		for n < len(list) && list[n].At == list[i].At {
			n++
		}
		if n == i+1 {
			c.literals = append(c.literals, []kg.ID{list[i].ID})
		} else if err := c.addTies(w, list[i:n]); err != nil {
			return err
		}
		i = n
	}
	if c.descending {
		slices.Reverse(c.literals)
	}
	return nil
}

// addTies adds the literals of one rank of which the predicate has statements, in the order of their
// values.
func (c *rankedChunks) addTies(w *kg.Sweep, list []kg.RankedLiteral) error {
	if c.gaveUp = c.gaveUp || len(list) > c.bounds.ties; c.gaveUp {
		return nil
	}
	var ids []kg.ID
	for _, l := range list {
		w.Seek(kg.IDPattern{Predicate: c.predicate, Object: l.ID}, nil)
		if !w.Next() {
			if c.passForeign(); c.gaveUp || w.Err() != nil {
				return w.Err()
			}
			continue
		}
		ids = append(ids, l.ID)
	}
	ties, err := valuesOf(c.snapshot, ids)
	sortLiterals(ties, false)
	c.addLiterals(ties)
	return err
}

// nextRanked returns the next literals in ascending order, with all of each rank. It sets ended behind
// the last of them.
func (c *rankedChunks) nextRanked() ([]kg.RankedLiteral, error) {
	if c.descending {
		return c.nextDescending()
	}
	list, more, err := kg.RankedLiterals(c.snapshot, c.left, c.many)
	if err != nil || !more {
		c.ended = true
		return list, err
	}
	last := list[len(list)-1].At
	if list[0].At == last {
		if list, err = c.readRank(last); err != nil {
			return nil, err
		}
	} else {
		for list[len(list)-1].At == last {
			list = list[:len(list)-1]
		}
		last = list[len(list)-1].At
	}
	if c.ended = last == c.left.Last; !c.ended {
		c.left.First = last + 1
	}
	return list, nil
}

// readRank reads the literals of one rank. The walk gives up if there are too many.
func (c *rankedChunks) readRank(at uint64) ([]kg.RankedLiteral, error) {
	list, more, err := kg.RankedLiterals(c.snapshot, kg.RankRange{Kind: c.left.Kind, First: at, Last: at}, c.bounds.ties)
	c.gaveUp = c.gaveUp || more
	return list, err
}

// nextDescending is nextRanked for the ranks before those that were read. The index is read forward
// only, so it looks for a span of ranks with some literals in it, as objectChunks does for ids.
func (c *rankedChunks) nextDescending() ([]kg.RankedLiteral, error) {
	crowded, known := uint64(0), false // from this rank on there are too many
	for !c.ended {
		first, last := c.left.First, c.left.Last
		if known {
			c.width = (last-crowded)/2 + 1
		}
		whole := c.width > last-first
		from := c.left
		if !whole {
			from.First = last - c.width + 1
		}
		most := c.many
		if from.First == from.Last {
			most = c.bounds.ties
		}
		list, more, err := kg.RankedLiterals(c.snapshot, from, most)
		if err != nil {
			return nil, err
		}
		if more && from.First < from.Last {
			crowded, known = from.First, true
			continue
		}
		c.gaveUp = c.gaveUp || more
		if c.ended = whole; !whole {
			c.left.Last = from.First - 1
		}
		if len(list) > 0 {
			if len(list) < c.many/4 {
				c.width = growWidth(c.width, 2)
			}
			return list, nil
		}
		c.width = growWidth(c.width, 16)
	}
	return nil, nil
}
