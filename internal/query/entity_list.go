package query

import (
	"iter"
	"slices"

	"koine/kg"
)

// EntityList is a list of the entities that match, in id order or in an order
// of its own.
type EntityList struct {
	Match    *EntityMatch
	Order    EntityOrdering
	First    int  // the size of a page
	Backward bool // pages end before their place instead of beginning after it
	Total    bool // pages count all entities
}

// Page is a page of a list.
type Page[K any] struct {
	Keys  []K
	More  bool   // there is a next page
	Total uint64 // counted on demand
}

// trimTo removes the element beyond the page, which shows that there is a next
// one.
func (g *Page[K]) trimTo(first int) {
	if len(g.Keys) > first {
		g.Keys, g.More = g.Keys[:first], true
	}
}

// fill sets the keys of a page that were collected in its direction, and one more
// if there is one.
func (g *Page[K]) fill(keys []K, first int, backward bool) {
	g.Keys = keys
	g.trimTo(first)
	if backward {
		slices.Reverse(g.Keys)
	}
}

// lastN keeps the last n elements of a walk.
type lastN[K any] struct {
	n    int
	ring []K
	seen int
}

func (l *lastN[K]) add(k K) {
	if l.seen++; l.n == 0 {
		return
	}
	if len(l.ring) < l.n {
		l.ring = append(l.ring, k)
		return
	}
	l.ring[(l.seen-1)%l.n] = k
}

// page returns the elements in order.
func (l *lastN[K]) page() (g Page[K]) {
	g.More = l.seen > l.n
	if g.Keys = l.ring; g.More && l.n > 0 {
		at := l.seen % l.n
		g.Keys = append(slices.Clone(l.ring[at:]), l.ring[:at]...)
	}
	return g
}

// lastPage finds the page before an entity in the order of ids, which it reads up
// to there.
func (l *EntityList) lastPage(s *kg.Snapshot, before *kg.ID) (g Page[kg.ID], err error) {
	last := lastN[kg.ID]{n: l.First}
	for e, err := range l.matches(s, nil, true, nil) {
		if err != nil {
			return g, err
		}
		if before != nil && e.id.Compare(*before) >= 0 {
			break
		}
		last.add(e.id)
	}
	g = last.page()
	if l.Total {
		g.Total, err = l.countAll(s)
	}
	return g, err
}

// countAll counts the entities that match, from the index if it has the count.
func (l *EntityList) countAll(s *kg.Snapshot) (uint64, error) {
	if !l.Match.class.IsZero() {
		if n, known, err := s.Instances(l.Match.class); known || err != nil {
			return n, err
		}
	}
	return l.Count(s)
}

// Page finds the page after an entity, or before it if the list goes backward.
func (l *EntityList) Page(s *kg.Snapshot, after *kg.ID) (g Page[kg.ID], err error) {
	if len(l.Order) > 0 {
		return l.sortPage(s, after, l.First)
	}
	if l.Backward {
		return l.lastPage(s, after)
	}
	from, count := after, l.Total
	if known := false; count && !l.Match.class.IsZero() {
		if g.Total, known, err = s.Instances(l.Match.class); err != nil {
			return g, err
		}
		count = !known
	}
	if count {
		from, g.Total = nil, 0 // all entities have to be tested
	}
	for e, err := range l.matches(s, from, count, nil) {
		if err != nil {
			return g, err
		}
		if count {
			g.Total++
		}
		if len(g.Keys) <= l.First && (after == nil || e.id.Compare(*after) > 0) {
			g.Keys = append(g.Keys, e.id)
		}
		if len(g.Keys) > l.First && !count {
			break
		}
	}
	g.trimTo(l.First)
	return g, nil
}

// matches yields the entities that match, after `after`. It calls skipped, if
// it is set, for each other candidate and ends when that returns false. whole
// tells that the caller reads all of them.
func (l *EntityList) matches(s *kg.Snapshot, after *kg.ID, whole bool, skipped func(kg.ID) bool) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		for e, err := range scanCandidates(s, l.Match, after, whole) {
			ok := false
			if err == nil {
				ok, err = l.Match.matchesEntity(e)
			}
			if err == nil && !ok {
				if skipped != nil && !skipped(e.id) {
					return
				}
			} else if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Count counts the entities that match.
func (l *EntityList) Count(s *kg.Snapshot) (n uint64, err error) {
	for _, err := range l.matches(s, nil, true, nil) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Scan yields the entities after `after` one at a time: all of them, or a page
// and one more if the list has an order. It calls skipped for each candidate
// that does not match and ends when that returns false.
func (l *EntityList) Scan(s *kg.Snapshot, after *kg.ID, skipped func(kg.ID) bool) iter.Seq2[kg.ID, error] {
	if l.Backward {
		return scanPage(func() (Page[kg.ID], error) { return l.Page(s, after) })
	}
	if len(l.Order) > 0 {
		return scanPage(func() (Page[kg.ID], error) { return l.sortPage(s, after, l.First+1) })
	}
	return func(yield func(kg.ID, error) bool) {
		for e, err := range l.matches(s, after, false, skipped) {
			if err != nil {
				yield(kg.ID{}, err)
				return
			}
			if !yield(e.id, nil) {
				return
			}
		}
	}
}

func scanPage[K any](find func() (Page[K], error)) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		g, err := find()
		if err != nil {
			var none K
			yield(none, err)
			return
		}
		for _, k := range g.Keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}

// Group groups the entities that match.
func (l *EntityList) Group(s *kg.Snapshot, by *EntityGrouping) ([]Group, error) {
	if groups, done, err := l.groupByRun(s, by); done || err != nil {
		return groups, err
	}
	t := NewGroupTable(s, by)
	for e, err := range l.wholeMatches(s) {
		if err == nil {
			err = t.Add(e)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Groups()
}

func (m *EntityMatch) matchesEntity(s *subject) (bool, error) {
	if m.test == nil {
		return true, nil
	}
	return m.test(s)
}

// sortPage finds a page in the list's order: by a walk over the values of the first key if that
// is likely to read less, or by ranking all entities that match.
func (l *EntityList) sortPage(s *kg.Snapshot, after *kg.ID, first int) (Page[kg.ID], error) {
	most, err := l.walkLimit(s)
	if err == nil && most > 0 {
		g, found, err := l.walkPage(s, after, first, most)
		if found || err != nil {
			return g, err
		}
	}
	if err != nil {
		return Page[kg.ID]{}, err
	}
	return l.rankPage(s, after, first)
}

// rankPage is sortPage by ranking all entities that match.
func (l *EntityList) rankPage(s *kg.Snapshot, after *kg.ID, first int) (g Page[kg.ID], err error) {
	b := topN[*subject, kg.ID]{order: l.Order, compare: kg.ID.Compare, n: first + 1, backward: l.Backward}
	if after != nil {
		if b.after, err = l.rank(s, *after); err != nil {
			return g, err
		}
	}
	for e, err := range l.matches(s, nil, true, nil) {
		if err == nil {
			g.Total++
			err = b.add(e, e.id)
		}
		if err != nil {
			return g, err
		}
	}
	g.fill(b.firstKeys(), first, l.Backward)
	return g, nil
}

// rank computes the rank of a cursor's entity.
func (l *EntityList) rank(s *kg.Snapshot, id kg.ID) (*ranked[kg.ID], error) {
	reader, err := l.Match.readSubjects(s)
	if err != nil {
		return nil, err
	}
	defer reader.close()
	e, err := reader.read(id)
	if err != nil {
		return nil, err
	}
	r, err := l.Order.rankOf(e)
	return &ranked[kg.ID]{r, id}, err
}
