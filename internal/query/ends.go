package query

import (
	"iter"
	"slices"

	"koine/kg"
)

// Ends tests the entities at the ends of paths. Each is tested once, however
// many paths lead to it. Ids are sorted.
type Ends struct {
	list   *EntityList
	reader *subjectReader
}

// Ends begins to test ends. The list has no order.
func (l *EntityList) Ends(s *kg.Snapshot) (*Ends, error) {
	r, err := l.Match.readSubjects(s)
	return &Ends{l, r}, err
}

// Close ends the walks.
func (x *Ends) Close() { x.reader.close() }

// Scan yields the entities that match, after `after`. It calls skipped, if it
// is set, for each other one and ends when that returns false.
func (x *Ends) Scan(ids []kg.ID, after *kg.ID, skipped func(kg.ID) bool) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		for _, id := range idsAfter(ids, after) {
			ok, err := x.reader.fits(id)
			if err == nil && !ok {
				if skipped != nil && !skipped(id) {
					return
				}
			} else if !yield(id, err) || err != nil {
				return
			}
		}
	}
}

// idsAfter returns the ids after one.
func idsAfter(ids []kg.ID, after *kg.ID) []kg.ID {
	if after == nil {
		return ids
	}
	i, found := slices.BinarySearchFunc(ids, *after, kg.ID.Compare)
	if found {
		i++
	}
	return ids[i:]
}

// Page finds the page after `after`.
func (x *Ends) Page(ids []kg.ID, after *kg.ID) (g Page[kg.ID], err error) {
	if x.list.Total {
		if g.Total, err = x.Count(ids); err != nil {
			return g, err
		}
	}
	for id, err := range x.Scan(ids, after, nil) {
		if err != nil {
			return g, err
		}
		if g.Keys = append(g.Keys, id); len(g.Keys) > x.list.First {
			break
		}
	}
	g.trimTo(x.list.First)
	return g, nil
}

// Count counts the entities that match.
func (x *Ends) Count(ids []kg.ID) (n uint64, err error) {
	for _, err := range x.Scan(ids, nil, nil) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Group groups the entities that match.
func (x *Ends) Group(ids []kg.ID, by *EntityGrouping) ([]Group, error) {
	t := NewGroupTable(x.reader.subject.snapshot, by)
	for _, id := range ids {
		e, err := x.reader.read(id)
		ok := false
		if err == nil {
			ok, err = x.list.Match.matchesEntity(e)
		}
		if err == nil && ok {
			err = t.Add(e)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Groups()
}
