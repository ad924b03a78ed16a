package graph

import (
	"slices"

	"koine/kg"
)

// listing is the content of a page before it is loaded.
type listing[K any] struct {
	keys  []K
	more  bool
	total uint64 // counted on demand
}

// trimTo removes the element beyond the page, which shows that there is a next
// one.
func (g *listing[K]) trimTo(first int) {
	if len(g.keys) > first {
		g.keys, g.more = g.keys[:first], true
	}
}

// listEntities finds a page of the matching entities after `after`.
func listEntities(s *kg.Snapshot, c *connection, after *kg.ID) (g listing[kg.ID], err error) {
	if len(c.entityOrder) > 0 {
		return sortEntities(s, c, after)
	}
	from, count := after, c.total
	if known := false; count && !c.entityMatch.class.IsZero() {
		if g.total, known, err = s.Instances(c.entityMatch.class); err != nil {
			return g, err
		}
		count = !known
	}
	if count {
		from, g.total = nil, 0 // all entities have to be tested
	}
	for e, err := range scanCandidates(s, c.entityMatch, from) {
		if err != nil {
			return g, err
		}
		ok, err := c.entityMatch.matchesEntity(e)
		if err != nil {
			return g, err
		}
		if !ok {
			continue
		}
		if count {
			g.total++
		}
		if len(g.keys) <= c.first && (after == nil || compareIDs(e.id, *after) > 0) {
			g.keys = append(g.keys, e.id)
		}
		if len(g.keys) > c.first && !count {
			break
		}
	}
	g.trimTo(c.first)
	return g, nil
}

func (m *entityMatch) matchesEntity(s *subject) (bool, error) {
	if m.test == nil {
		return true, nil
	}
	return m.test(s)
}

func sortEntities(s *kg.Snapshot, c *connection, after *kg.ID) (g listing[kg.ID], err error) {
	b := topN[*subject, kg.ID]{order: c.entityOrder, compare: compareIDs, n: c.first + 1}
	if after != nil {
		if b.after, err = rankEntity(s, c, *after); err != nil {
			return g, err
		}
	}
	for e, err := range scanCandidates(s, c.entityMatch, nil) {
		if err != nil {
			return g, err
		}
		ok, err := c.entityMatch.matchesEntity(e)
		if err == nil && ok {
			g.total++
			err = b.add(e, e.id)
		}
		if err != nil {
			return g, err
		}
	}
	g.keys = b.firstKeys()
	g.trimTo(c.first)
	return g, nil
}

// rankEntity computes the rank of a cursor's entity.
func rankEntity(s *kg.Snapshot, c *connection, id kg.ID) (*ranked[kg.ID], error) {
	w, err := resolvePredicates(c.entityMatch.wanted, s.ID)
	if err != nil {
		return nil, err
	}
	scan := newEntityScan(s)
	defer scan.close()
	g := gatherSubjects(s, &w)
	defer g.close()
	e := &subject{snapshot: s, scan: scan}
	if err := g.next(e, id); err != nil {
		return nil, err
	}
	r, err := c.entityOrder.rankOf(e)
	return &ranked[kg.ID]{r, id}, err
}

// listStatements finds a page of the statements that match the pattern and the
// connection's test, after `after`.
func listStatements(s *kg.Snapshot, c *connection, p kg.IDPattern, after *kg.IDQuad) (listing[kg.Row], error) {
	l := newStatementLister(s, c, p)
	defer l.close()
	return l.listPage(p, after)
}

// statementLister finds pages of one connection for a sequence of patterns. It
// takes one walk over the index if the patterns come in order, and another one
// for counts.
type statementLister struct {
	snapshot *kg.Snapshot
	c        *connection
	sweep    *kg.Sweep
	totals   *kg.Sweep // nil until a count is needed
	fact     testedStatement
	rows     []kg.Row // of all pages so far, concatenated
}

func newStatementLister(s *kg.Snapshot, c *connection, p kg.IDPattern) *statementLister {
	return &statementLister{snapshot: s, c: c, sweep: c.startSweep(s, p), fact: testedStatement{snapshot: s}}
}

// startSweep starts a walk over statements of patterns like this one. It includes
// the assertions if they are needed and cheap: see kg.SweepAsserted.
func (c *connection) startSweep(s *kg.Snapshot, p kg.IDPattern) *kg.Sweep {
	ofSubject := p == kg.IDPattern{Subject: p.Subject}
	if c.statementMatch.asserted && ofSubject || c.showsAssertions() && p.Subject != (kg.ID{}) && (ofSubject || p.Predicate != (kg.ID{})) {
		return s.SweepAsserted()
	}
	return s.Sweep()
}

// showsAssertions reports whether the answer shows assertions.
func (c *connection) showsAssertions() bool {
	return slices.ContainsFunc(c.statements, func(p *statementPlan) bool { return p.assertions })
}

func (l *statementLister) close() {
	l.sweep.Close()
	if l.totals != nil {
		l.totals.Close()
	}
}

func (l *statementLister) listPage(p kg.IDPattern, after *kg.IDQuad) (g listing[kg.Row], err error) {
	if len(l.c.statementOrder) > 0 {
		return l.sortPage(p, after)
	}
	start, count := len(l.rows), l.c.total && after == nil && l.c.statementMatch.test != nil // counted during the walk
	for l.sweep.Seek(p, after); (count || len(l.rows)-start <= l.c.first) && l.sweep.Next(); {
		row := l.sweep.Row()
		ok, err := l.c.matchesRow(&l.fact, *row)
		if err != nil {
			return g, err
		}
		if !ok {
			continue
		}
		if g.total++; len(l.rows)-start <= l.c.first {
			l.rows = append(l.rows, *row)
		}
	}
	if err := l.sweep.Err(); err != nil {
		return g, err
	}
	g.keys = l.rows[start:]
	g.trimTo(l.c.first)
	l.rows = l.rows[:start+len(g.keys)]
	if l.c.total && !count {
		g.total, err = l.countAll(p)
	}
	return g, err
}

func (c *connection) matchesRow(f *testedStatement, row kg.Row) (bool, error) {
	f.moveTo(row)
	if c.statementMatch.test == nil {
		return true, nil
	}
	return c.statementMatch.test(f)
}

// countStatements counts the statements that match the pattern and the
// connection's test.
func countStatements(s *kg.Snapshot, c *connection, p kg.IDPattern) (uint64, error) {
	l := newStatementLister(s, c, p)
	defer l.close()
	return l.countAll(p)
}

// countAll counts the statements of the pattern on all pages.
func (l *statementLister) countAll(p kg.IDPattern) (n uint64, err error) {
	if l.totals == nil {
		l.totals = l.c.startSweep(l.snapshot, p)
	}
	if l.c.statementMatch.test == nil {
		return l.totals.Count(p)
	}
	for l.totals.Seek(p, nil); l.totals.Next(); {
		ok, err := l.c.matchesRow(&l.fact, *l.totals.Row())
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, l.totals.Err()
}

func (l *statementLister) sortPage(p kg.IDPattern, after *kg.IDQuad) (g listing[kg.Row], err error) {
	b := topN[*testedStatement, kg.Row]{order: l.c.statementOrder, compare: compareRows, n: l.c.first + 1}
	if after != nil {
		if b.after, err = rankStatement(l.snapshot, l.c, *after); err != nil {
			return g, err
		}
	}
	for l.sweep.Seek(p, nil); l.sweep.Next(); {
		row := l.sweep.Row()
		ok, err := l.c.matchesRow(&l.fact, *row)
		if err == nil && ok {
			g.total++
			err = b.add(&l.fact, *row)
		}
		if err != nil {
			return g, err
		}
	}
	g.keys = b.firstKeys()
	g.trimTo(l.c.first)
	l.rows = append(l.rows, g.keys...)
	return g, l.sweep.Err()
}

func rankStatement(s *kg.Snapshot, c *connection, q kg.IDQuad) (*ranked[kg.Row], error) {
	for row, err := range s.MatchIDs(kg.IDPattern(q), nil) {
		if err != nil {
			return nil, err
		}
		f := &testedStatement{snapshot: s}
		f.moveTo(row)
		r, err := c.statementOrder.rankOf(f)
		return &ranked[kg.Row]{r, row}, err
	}
	// The graph's policy has changed, so the view no longer shows the
	// statement.
	return nil, kg.Errorf(kg.CodeCursorGone, "the statement of the cursor no longer exists").At("after")
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
