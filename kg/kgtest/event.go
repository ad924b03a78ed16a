package kgtest

import (
	"slices"

	"koine/kg"
)

// Events returns the events that a watcher with the filter must receive behind the position from:
// for each change, the difference of the filter's view before and after it.
func (m *Model) Events(f kg.Filter, from kg.Position) []kg.Event {
	w := filterView{model: m, filter: f}
	var out []kg.Event
	for _, c := range m.Commits {
		for i := range c.Changes {
			if isBehind(c, i, from) || m.isDropped(c.Changes[i].Quad.Graph, c.Revision) {
				continue
			}
			e, ok := w.eventOf(c, i)
			if !ok || f.Ops != nil && !slices.Contains(f.Ops, e.Op) {
				continue
			}
			e.Commit, e.Position = c, positionOf(m.epoch, c, i)
			out = append(out, e)
		}
	}
	return out
}

// isBehind reports whether the change is at or before the position.
func isBehind(c *kg.Commit, i int, p kg.Position) bool {
	return kg.Position{Revision: c.Revision, Index: uint32(i)}.Compare(p) <= 0
}

// positionOf returns the position behind a change; for the last change of a commit, the end of the
// commit.
func positionOf(epoch kg.Epoch, c *kg.Commit, i int) kg.Position {
	p := kg.Position{Epoch: epoch, Revision: c.Revision, Index: uint32(i)}
	if i == len(c.Changes)-1 {
		p.Index = kg.EndOfCommit
	}
	return p
}

// matchesAny reports whether the quad matches any of the patterns; nil matches all.
func matchesAny(patterns []kg.Pattern, q kg.Quad) bool {
	return patterns == nil || slices.ContainsFunc(patterns, func(p kg.Pattern) bool { return p.Matches(q) })
}

type filterView struct {
	model  *Model
	filter kg.Filter
}

// visibleAssertions returns the assertions of a statement that the filter's view shows.
func (w filterView) visibleAssertions(q kg.Quad, backing []kg.Assertion) []kg.Assertion {
	if !matchesAny(w.filter.Patterns, q) || !w.model.isVisible(w.filter.View, q.Graph) {
		return nil
	}
	var out []kg.Assertion
	for _, a := range w.model.admittedAssertions(w.filter.View, q.Graph, backing) {
		if w.filter.Keep == nil || w.filter.Keep(kg.Statement{Quad: q, Assertions: []kg.Assertion{a}}) {
			out = append(out, a)
		}
	}
	return out
}

func (w filterView) eventOf(commit *kg.Commit, i int) (kg.Event, bool) {
	c := commit.Changes[i]
	if c.Op == kg.Remove {
		if c.ReplacedBy >= 0 {
			by := commit.Changes[c.ReplacedBy]
			if w.visibleAssertions(by.Quad, []kg.Assertion{by.Assertion}) != nil {
				return kg.Event{}, false // part of the event of the replacement
			}
		}
		return w.removalEvent(c)
	}
	return w.additionEvent(commit, c)
}

// removalEvent returns the event of a change that removed one assertion or all.
func (w filterView) removalEvent(c kg.Change) (kg.Event, bool) {
	gone := w.visibleAssertions(c.Quad, []kg.Assertion{c.Assertion})
	if len(c.After) == 0 && len(c.Before) > 1 {
		gone = w.visibleAssertions(c.Quad, c.Before)
	}
	if len(gone) == 0 {
		return kg.Event{}, false
	}
	return kg.Event{
		Op:               kg.Remove,
		Statement:        kg.Statement{Quad: c.Quad, Assertions: gone[:1]},
		StatementRemains: w.visibleAssertions(c.Quad, c.After) != nil,
	}, true
}

// additionEvent returns the event of a change that made an assertion. The previous
// assertion by the same source and the replaced statements are its removals.
func (w filterView) additionEvent(commit *kg.Commit, c kg.Change) (kg.Event, bool) {
	var went []kg.Statement
	for _, r := range c.Replaces {
		other := commit.Changes[r]
		if gone := w.visibleAssertions(other.Quad, other.Before); gone != nil {
			went = append(went, kg.Statement{Quad: other.Quad, Assertions: gone})
		}
	}
	var own []kg.Assertion
	if i := bySource(c.Before, c.Assertion.Source); i >= 0 {
		own = w.visibleAssertions(c.Quad, c.Before[i:i+1])
	}
	came := w.visibleAssertions(c.Quad, []kg.Assertion{c.Assertion})
	switch {
	case came == nil && own == nil:
		return kg.Event{}, false
	case came == nil: // the view does not show the new assertion
		return kg.Event{
			Op: kg.Remove, Statement: kg.Statement{Quad: c.Quad, Assertions: own},
			StatementRemains: w.visibleAssertions(c.Quad, c.After) != nil,
		}, true
	case own != nil:
		went = append(went, kg.Statement{Quad: c.Quad, Assertions: own})
	}
	e := kg.Event{Op: kg.Add, Statement: kg.Statement{Quad: c.Quad, Assertions: came}, Previous: went}
	if len(went) > 0 {
		e.Op = kg.Replace
	}
	return e, true
}
