package query

import (
	"iter"

	"koine/kg"
)

// StatementList is a list of the statements that match, in the order of the
// index or in an order of its own. Its methods take the ids of the match's
// pattern, which a caller may narrow.
type StatementList struct {
	Match      StatementMatch
	Order      StatementOrdering
	First      int  // the size of a page
	Backward   bool // pages end before their place instead of beginning after it
	Total      bool // pages count all statements
	Assertions bool // the caller reads the assertions of the statements
}

// Page finds the page of the pattern's statements after `after`.
func (l *StatementList) Page(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) (Page[kg.Row], error) {
	pages := l.Pages(s, p)
	defer pages.Close()
	return pages.Page(p, after)
}

// Pages finds pages of one list for a sequence of patterns. It takes one walk
// over the index if the patterns come in order, and another one for counts.
type Pages struct {
	Rows []kg.Row // of all pages so far, concatenated

	list     *StatementList
	snapshot *kg.Snapshot
	sweep    *kg.Sweep
	totals   *kg.Sweep // nil until a count is needed
	fact     testedStatement
}

// Pages begins to find pages for patterns like this one.
func (l *StatementList) Pages(s *kg.Snapshot, p kg.IDPattern) *Pages {
	return &Pages{snapshot: s, list: l, sweep: l.startSweep(s, p), fact: testedStatement{snapshot: s}}
}

// startSweep starts a walk over statements of patterns like this one. It includes
// the assertions if they are needed and cheap: see kg.SweepAsserted.
func (l *StatementList) startSweep(s *kg.Snapshot, p kg.IDPattern) *kg.Sweep {
	ofSubject := p == kg.IDPattern{Subject: p.Subject}
	if l.Match.asserted && ofSubject || l.Assertions && p.Subject != (kg.ID{}) && (ofSubject || p.Predicate != (kg.ID{})) {
		return s.SweepAsserted()
	}
	return s.Sweep()
}

// Close ends the walks.
func (l *Pages) Close() {
	l.sweep.Close()
	if l.totals != nil {
		l.totals.Close()
	}
}

// Page finds the page of one pattern after a statement, or before it if the list
// goes backward. Its keys are the last of Rows.
func (l *Pages) Page(p kg.IDPattern, after *kg.IDQuad) (g Page[kg.Row], err error) {
	first, total := l.list.First, l.list.Total
	if len(l.list.Order) > 0 || l.list.Backward {
		if len(l.list.Order) > 0 {
			g, err = l.sortPage(p, after, first)
		} else {
			g, err = l.lastPage(p, after, first)
		}
		l.Rows = append(l.Rows, g.Keys...)
		return g, err
	}
	start, count := len(l.Rows), total && after == nil && l.list.Match.test != nil // counted during the walk
	for l.sweep.SeekObjects(p, l.list.Match.objects, after); (count || len(l.Rows)-start <= first) && l.sweep.Next(); {
		row := l.sweep.Row()
		ok, err := l.list.Match.holds(&l.fact, row)
		if err != nil {
			return g, err
		}
		if !ok {
			continue
		}
		if g.Total++; len(l.Rows)-start <= first {
			l.Rows = append(l.Rows, *row)
		}
	}
	if err := l.sweep.Err(); err != nil {
		return g, err
	}
	g.Keys = l.Rows[start:]
	g.trimTo(first)
	l.Rows = l.Rows[:start+len(g.Keys)]
	if total && !count {
		g.Total, err = l.countAll(p)
	}
	return g, err
}

// lastPage finds the page before a statement in the order of the index, which it
// reads up to there.
func (l *Pages) lastPage(p kg.IDPattern, before *kg.IDQuad, first int) (g Page[kg.Row], err error) {
	last := lastN[kg.Row]{n: first}
	found := before == nil
	for l.sweep.SeekObjects(p, l.list.Match.objects, nil); l.sweep.Next(); {
		row := l.sweep.Row()
		if found = found || row.IDQuad == *before; before != nil && found {
			break
		}
		ok, err := l.list.Match.holds(&l.fact, row)
		if err != nil {
			return g, err
		}
		if ok {
			last.add(*row)
		}
	}
	if err := l.sweep.Err(); err != nil {
		return g, err
	}
	if !found {
		return g, errCursorGone("statement", "before")
	}
	g = last.page()
	if l.list.Total {
		g.Total, err = l.countAll(p)
	}
	return g, err
}

func errCursorGone(what, argument string) error {
	return kg.Errorf(kg.CodeCursorGone, "the %s of the cursor no longer exists", what).At(argument)
}

// holds moves f to the row and reports whether the row matches.
func (m *StatementMatch) holds(f *testedStatement, row *kg.Row) (bool, error) {
	f.moveTo(row)
	if m.test == nil {
		return true, nil
	}
	return m.test(f)
}

// Tester returns a function that reports whether a row matches.
func (m *StatementMatch) Tester(s *kg.Snapshot) func(kg.Row) (bool, error) {
	f := &testedStatement{snapshot: s}
	return func(row kg.Row) (bool, error) { return m.holds(f, &row) }
}

// Count counts the statements of the pattern that match.
func (l *StatementList) Count(s *kg.Snapshot, p kg.IDPattern) (uint64, error) {
	pages := l.Pages(s, p)
	defer pages.Close()
	return pages.countAll(p)
}

// countAll counts the statements of the pattern on all pages.
func (l *Pages) countAll(p kg.IDPattern) (n uint64, err error) {
	if l.totals == nil {
		l.totals = l.list.startSweep(l.snapshot, p)
	}
	if l.list.Match.test == nil {
		return l.totals.Count(p)
	}
	for l.totals.SeekObjects(p, l.list.Match.objects, nil); l.totals.Next(); {
		ok, err := l.list.Match.holds(&l.fact, l.totals.Row())
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, l.totals.Err()
}

// Scan yields the statements of the pattern after `after` one at a time: all of
// them, or a page and one more if the list has an order. It calls skipped for
// each statement that does not match and ends when that returns false.
func (l *StatementList) Scan(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad, skipped func(kg.Row) bool) iter.Seq2[kg.Row, error] {
	if l.Backward {
		return scanPage(func() (Page[kg.Row], error) { return l.Page(s, p, after) })
	}
	if len(l.Order) > 0 {
		return scanPage(func() (Page[kg.Row], error) {
			pages := l.Pages(s, p)
			defer pages.Close()
			return pages.sortPage(p, after, l.First+1)
		})
	}
	return func(yield func(kg.Row, error) bool) {
		f := &testedStatement{snapshot: s}
		rows := s.MatchIDs(p, after)
		if l.Match.objects != nil && kg.HasObjectOrder(p) {
			rows = l.Match.scanObjects(s, p, after)
		}
		for row, err := range rows {
			ok := false
			if err == nil {
				ok, err = l.Match.holds(f, &row)
			}
			if err == nil && !ok {
				if !skipped(row) {
					return
				}
			} else if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Group groups the statements of the pattern that match.
func (l *StatementList) Group(s *kg.Snapshot, p kg.IDPattern, by *StatementGrouping) ([]Group, error) {
	if groups, done, err := l.groupByRun(s, p, by); done || err != nil {
		return groups, err
	}
	t := NewGroupTable(s, by)
	f := &testedStatement{snapshot: s}
	for row, err := range l.Match.scanRows(s, p, nil) {
		if err != nil {
			return nil, err
		}
		ok, err := l.Match.holds(f, &row)
		if err == nil && ok {
			err = addStatement(t, f)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Groups()
}

func (l *Pages) sortPage(p kg.IDPattern, after *kg.IDQuad, first int) (g Page[kg.Row], err error) {
	b := topN[*testedStatement, kg.Row]{order: l.list.Order, compare: compareRows, n: first + 1, backward: l.list.Backward}
	if after != nil {
		if b.after, err = l.list.rank(l.snapshot, *after); err != nil {
			return g, err
		}
	}
	for l.sweep.SeekObjects(p, l.list.Match.objects, nil); l.sweep.Next(); {
		row := l.sweep.Row()
		ok, err := l.list.Match.holds(&l.fact, row)
		if err == nil && ok {
			g.Total++
			err = b.add(&l.fact, *row)
		}
		if err != nil {
			return g, err
		}
	}
	g.fill(b.firstKeys(), first, l.list.Backward)
	return g, l.sweep.Err()
}

// rank computes the rank of a cursor's statement.
func (l *StatementList) rank(s *kg.Snapshot, q kg.IDQuad) (*ranked[kg.Row], error) {
	for row, err := range s.MatchIDs(kg.IDPattern(q), nil) {
		if err != nil {
			return nil, err
		}
		f := &testedStatement{snapshot: s}
		f.moveTo(&row)
		r, err := l.Order.rankOf(f)
		return &ranked[kg.Row]{r, row}, err
	}
	// The graph's policy has changed, so the view no longer shows the
	// statement.
	if l.Backward {
		return nil, errCursorGone("statement", "before")
	}
	return nil, errCursorGone("statement", "after")
}

func compareRows(a, b kg.Row) int {
	for _, c := range [...]int{
		a.Subject.Compare(b.Subject), a.Predicate.Compare(b.Predicate),
		a.Object.Compare(b.Object), a.Graph.Compare(b.Graph),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}
