package valuewalk

import (
	"slices"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// streamIDs yields the statements with objects in a range of ids that are in the order of their
// values.
func streamIDs(s *kg.Snapshot, predicate kg.ID, ids kg.IDRange, descending bool) func() (Row, bool, error) {
	c := &objectChunks{snapshot: s, predicate: predicate, left: ids, descending: descending, width: 1}
	var object kg.ID
	var v valuespace.Value
	return func() (row Row, more bool, err error) {
		if len(c.rows) == 0 {
			if err = c.read(); err != nil || len(c.rows) == 0 {
				return row, false, err
			}
		}
		at := c.rows[0]
		if c.rows = c.rows[1:]; at.Object != object {
			t, err := s.Term(at.Object)
			if err != nil {
				return row, false, err
			}
			object, v = at.Object, valuespace.Of(t)
		}
		return Row{v, at}, true, nil
	}
}

// objectChunks reads the statements of a predicate with objects in a range of ids of one datatype,
// some at a time, by object in one direction and then by subject. The index is read forward only,
// so a descending walk looks for a place with some statements behind it.
type objectChunks struct {
	snapshot   *kg.Snapshot
	predicate  kg.ID
	left       kg.IDRange // not read yet
	ended      bool
	descending bool
	rows       []kg.IDQuad
	// within is the part of an ascending walk that is read forward, of a descending one that is
	// one object with many statements; after is the last statement that was read of it.
	within *kg.IDRange
	after  *kg.IDQuad
	// width is the number of ids that the next chunk of a descending walk spans.
	width uint64
}

// maxChunk is the number of statements that are read at once.
const maxChunk = 256

// read reads the next chunk into rows, which stays empty at the end.
func (c *objectChunks) read() error {
	c.rows = c.rows[:0:0]
	if !c.descending && !c.ended {
		c.within, c.ended = &c.left, true
	}
	crowded, known := uint64(0), false // from this id on there are more than a chunk
	for c.within != nil || !c.ended {
		if c.within != nil {
			if err := c.readForward(); err != nil || len(c.rows) > 0 {
				return err
			}
			continue
		}
		first, last := c.left.First.Number(), c.left.Last.Number()
		from := c.left
		if known {
			c.width = (last-crowded)/2 + 1
		}
		whole := c.width > last-first
		if !whole {
			from.First = c.left.Last.WithNumber(last - c.width + 1)
		}
		many, err := c.readBackward(from)
		switch {
		case err != nil:
			return err
		case many && from.First != from.Last:
			crowded, known = from.First.Number(), true
			continue
		case many:
			c.within = &from
		}
		if c.ended = whole; !whole {
			c.left.Last = from.Before()
		}
		if len(c.rows) > 0 {
			if len(c.rows) < maxChunk/4 {
				c.width = growWidth(c.width, 2)
			}
			return nil
		}
		c.width = growWidth(c.width, 16)
	}
	return nil
}

func growWidth(width, by uint64) uint64 {
	if width > 1<<63/by {
		return 1 << 63
	}
	return width * by
}

// readBackward reads the statements with objects in a range, those with the greatest object first.
// many is true, and nothing is read, if there are more than maxChunk.
func (c *objectChunks) readBackward(ids kg.IDRange) (many bool, err error) {
	c.rows = c.rows[:0]
	for row, err := range c.snapshot.MatchIDs(kg.IDPattern{Predicate: c.predicate}, beforeObjects(c.predicate, ids)) {
		if err != nil {
			return false, err
		}
		if !ids.Contains(row.Object) {
			break
		}
		if len(c.rows) >= maxChunk {
			c.rows = c.rows[:0]
			return true, nil
		}
		c.rows = append(c.rows, row.IDQuad)
	}
	slices.SortStableFunc(c.rows, func(a, b kg.IDQuad) int { return b.Object.Compare(a.Object) })
	return false, nil
}

// readForward reads the next statements of within, which is nil at its end.
func (c *objectChunks) readForward() error {
	if c.after == nil {
		c.after = beforeObjects(c.predicate, *c.within)
	}
	for row, err := range c.snapshot.MatchIDs(kg.IDPattern{Predicate: c.predicate}, c.after) {
		if err != nil {
			return err
		}
		if !c.within.Contains(row.Object) {
			break
		}
		if c.rows = append(c.rows, row.IDQuad); len(c.rows) == maxChunk {
			last := row.IDQuad
			c.after = &last
			return nil
		}
	}
	c.within, c.after = nil, nil
	return nil
}
