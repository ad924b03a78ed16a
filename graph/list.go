package graph

import (
	"koine/kg"
)

// listing is what a page holds, before it is loaded.
type listing[K any] struct {
	keys  []K
	more  bool
	total uint64 // counted only when asked for
}

// cut notes whether there was one more than asked for.
func (g *listing[K]) cut(first int) {
	if len(g.keys) > first {
		g.keys, g.more = g.keys[:first], true
	}
}

// listEntities finds a page of the entities that match, behind after.
func listEntities(s *kg.Snapshot, c *connection, after *kg.ID) (g listing[kg.ID], err error) {
	if len(c.entityOrder) > 0 {
		return sortEntities(s, c, after)
	}
	from := after
	if c.total {
		from = nil // all have to be seen
	}
	for e, err := range candidates(s, c.entityMatch, from) {
		if err != nil {
			return g, err
		}
		ok, err := c.entityMatch.holds(e)
		if err != nil {
			return g, err
		}
		if !ok {
			continue
		}
		g.total++
		if len(g.keys) <= c.first && (after == nil || compareIDs(e.id, *after) > 0) {
			g.keys = append(g.keys, e.id)
		}
		if len(g.keys) > c.first && !c.total {
			break
		}
	}
	g.cut(c.first)
	return g, nil
}

func (m *entityMatch) holds(s *subject) (bool, error) {
	if m.test == nil {
		return true, nil
	}
	return m.test(s)
}

func sortEntities(s *kg.Snapshot, c *connection, after *kg.ID) (g listing[kg.ID], err error) {
	b := best[*subject, kg.ID]{order: c.entityOrder, compare: compareIDs, n: c.first + 1}
	if after != nil {
		if b.after, err = rankEntity(s, c, *after); err != nil {
			return g, err
		}
	}
	for e, err := range candidates(s, c.entityMatch, nil) {
		if err != nil {
			return g, err
		}
		ok, err := c.entityMatch.holds(e)
		if err == nil && ok {
			g.total++
			err = b.add(e, e.id)
		}
		if err != nil {
			return g, err
		}
	}
	g.keys = b.keys()
	g.cut(c.first)
	return g, nil
}

// rankEntity finds the place of a cursor's entity again.
func rankEntity(s *kg.Snapshot, c *connection, id kg.ID) (*ranked[kg.ID], error) {
	w, err := resolve(c.entityMatch.wanted, s.ID)
	if err != nil {
		return nil, err
	}
	e := &subject{snapshot: s, id: id}
	if err := e.gatherRows(&w); err != nil {
		return nil, err
	}
	r, err := c.entityOrder.rank(e)
	return &ranked[kg.ID]{r, id}, err
}

// listStatements finds a page of the statements that fit the pattern and the
// connection's test, behind after.
func listStatements(s *kg.Snapshot, c *connection, p kg.IDPattern, after *kg.IDQuad) (g listing[kg.Row], err error) {
	if len(c.statementOrder) > 0 {
		return sortStatements(s, c, p, after)
	}
	f := &fact{snapshot: s}
	for row, err := range s.MatchIDs(p, after) {
		if err != nil {
			return g, err
		}
		ok, err := c.holds(f, row)
		if err != nil {
			return g, err
		}
		if ok {
			if g.keys = append(g.keys, row); len(g.keys) > c.first {
				break
			}
		}
	}
	g.cut(c.first)
	if c.total {
		g.total, err = countStatements(s, c, p)
	}
	return g, err
}

func (c *connection) holds(f *fact, row kg.Row) (bool, error) {
	f.at(row)
	if c.statementMatch.test == nil {
		return true, nil
	}
	return c.statementMatch.test(f)
}

func countStatements(s *kg.Snapshot, c *connection, p kg.IDPattern) (n uint64, err error) {
	if c.statementMatch.test == nil {
		return s.CountIDs(p)
	}
	f := &fact{snapshot: s}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return n, err
		}
		ok, err := c.holds(f, row)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func sortStatements(s *kg.Snapshot, c *connection, p kg.IDPattern, after *kg.IDQuad) (g listing[kg.Row], err error) {
	b := best[*fact, kg.Row]{order: c.statementOrder, compare: compareRows, n: c.first + 1}
	f := &fact{snapshot: s}
	if after != nil {
		if b.after, err = rankStatement(s, c, *after); err != nil {
			return g, err
		}
	}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return g, err
		}
		ok, err := c.holds(f, row)
		if err == nil && ok {
			g.total++
			err = b.add(f, row)
		}
		if err != nil {
			return g, err
		}
	}
	g.keys = b.keys()
	g.cut(c.first)
	return g, nil
}

func rankStatement(s *kg.Snapshot, c *connection, q kg.IDQuad) (*ranked[kg.Row], error) {
	for row, err := range s.MatchIDs(kg.IDPattern(q), nil) {
		if err != nil {
			return nil, err
		}
		f := &fact{snapshot: s}
		f.at(row)
		r, err := c.statementOrder.rank(f)
		return &ranked[kg.Row]{r, row}, err
	}
	// The view shows it no longer: its graph's policy has changed.
	return nil, kg.Errorf(kg.CodeCursorGone, "the statement that the cursor stands at is gone").At("after")
}

func compareRows(a, b kg.Row) int {
	for _, c := range [...]int{
		compareIDs(a.Subject, b.Subject), compareIDs(a.Predicate, b.Predicate),
		compareIDs(a.Object, b.Object), compareIDs(a.Graph, b.Graph),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}
