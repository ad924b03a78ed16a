package knowledge

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/internal/operation"
	"koine/internal/query/path"
	"koine/kg"
)

// planHistory plans Entity.history.
func (b entityFieldPlan) planHistory(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceEntityHistoryArgs)
	if err != nil {
		return err
	}
	b.field.kind = entityHistory
	b.field.history, err = b.planner.planChangeList(f, changeListArgs{
		Where: args.Where, Order: args.Order, After: args.After, First: args.First, Direction: args.Direction,
	})
	return err
}

// loadHistories loads a field `history` of the entities: one page each, with the
// changes of all pages loaded together.
func (l *loader) loadHistories(plan *entityPlan, field int, nodes []entityNode) error {
	c := plan.fields[field].history
	part, err := l.logRange(c)
	if err != nil {
		return err
	}
	var events []operation.Event
	pages := make([]*page, len(nodes))
	starts := make([]int, len(nodes)+1)
	for i := range nodes {
		pages[i] = &page{connection: c.connection}
		if c.total {
			if err := l.countHistory(c, nodes[i].ref.name, pages[i]); err != nil {
				return err
			}
		}
		if events, err = l.appendHistory(c, part, nodes[i].ref.name, pages[i], events); err != nil {
			return err
		}
		if l.run.cutter != nil {
			if err := l.closeChanges(c, pages[i], events[starts[i]:], part); err != nil {
				return err
			}
		}
		starts[i+1] = len(events)
		nodes[i].slots[field].page = pages[i]
	}
	if l.run.cutter != nil {
		return nil
	}
	return l.shareChanges(c, events, pages, starts)
}

// appendHistory appends the changes of a page of one entity's history to events. The
// index of past versions gives the commits to read.
func (l *loader) appendHistory(c *changeList, part kg.LogRange, entity kg.Term, g *page, events []operation.Event) ([]operation.Event, error) {
	store, filter := l.reader.Store, c.filter
	filter.Patterns = c.entityPatterns(entity)
	whole, err := store.ReadLog(l.ctx, filter, part) // reports a range that the log no longer has
	if err != nil {
		return nil, atAfter(err)
	}
	revisions, err := l.changedIn(filter.Patterns, part)
	if err != nil {
		return nil, err
	}
	reached := whole.Reached()
	for n, r := range revisions {
		if n == l.reader.Limits.Commits {
			g.more = true
			l.endPage(g, reached)
			return events, nil
		}
		log, err := store.ReadLog(l.ctx, filter, withinCommit(part, r))
		if err != nil {
			return nil, atAfter(err)
		}
		if events, err = l.collectEvents(c, g, events, log.Events()); err != nil {
			return nil, err
		}
		if reached = log.Reached(); g.more {
			l.endPage(g, reached)
			return events, nil
		}
	}
	if reached = part.Until; c.backward {
		reached = part.After
	}
	l.endPage(g, reached)
	return events, nil
}

// withinCommit returns the part of a range that is in one commit.
func withinCommit(part kg.LogRange, r kg.Revision) kg.LogRange {
	if from := (kg.Position{Epoch: part.After.Epoch, Revision: r - 1, Index: kg.EndOfCommit}); from.Compare(part.After) > 0 {
		part.After = from
	}
	if until := (kg.Position{Epoch: part.After.Epoch, Revision: r, Index: kg.EndOfCommit}); until.Compare(part.Until) < 0 {
		part.Until = until
	}
	return part
}

// countHistory counts the changes of one entity's history on all pages: of
// Limits.Commits commits, or the total is null with a hint.
func (l *loader) countHistory(c *changeList, entity kg.Term, g *page) error {
	whole := *c
	whole.after = nil
	part, err := l.logRange(&whole)
	if err != nil {
		return err
	}
	filter := c.filter
	filter.Patterns, filter.Replacements = c.entityPatterns(entity), false
	revisions, err := l.changedIn(filter.Patterns, part)
	if err != nil {
		return err
	}
	for n, r := range revisions {
		if n == l.reader.Limits.Commits {
			l.leaveUncounted(g)
			return nil
		}
		log, err := l.reader.Store.ReadLog(l.ctx, filter, withinCommit(part, r))
		if err != nil {
			return atAfter(err)
		}
		if err := countEvents(g, log.Events()); err != nil {
			return err
		}
	}
	return nil
}

// listsAny reports whether a loaded page of statements with the entity, or of changes of them, has
// any.
func (n *entityNode) listsAny() bool {
	for i := range n.plan.fields {
		switch n.plan.fields[i].kind {
		case entityHistory, entityStatements:
			if n.slots[i].page.size > 0 {
				return true
			}
		}
	}
	return false
}

// entityPatterns returns the patterns of the statements with the entity that meet the
// condition.
func (c *changeList) entityPatterns(entity kg.Term) []kg.Pattern {
	patterns := []kg.Pattern{} // an empty list matches nothing, unlike nil
	for _, side := range []struct {
		asked bool
		of    func(*kg.Pattern) *kg.Term
	}{
		{c.direction != path.In, func(p *kg.Pattern) *kg.Term { return &p.Subject }},
		{c.direction != path.Out, func(p *kg.Pattern) *kg.Term { return &p.Object }},
	} {
		p := c.match.Pattern
		if t := side.of(&p); side.asked && (t.IsZero() || *t == entity) {
			*t = entity
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// changedIn lists the revisions in which statements of the patterns changed,
// in the order in which the log is read.
func (l *loader) changedIn(patterns []kg.Pattern, part kg.LogRange) (revisions []kg.Revision, err error) {
	changed := func(r kg.Revision) {
		end := kg.Position{Revision: r, Index: kg.EndOfCommit}
		if r > 0 && end.Compare(part.After) > 0 && r <= part.Until.Revision {
			revisions = append(revisions, r)
		}
	}
	for _, p := range patterns {
		ids, known, err := l.snapshot.PatternIDs(p)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		for v, err := range l.snapshot.Versions(ids, nil) {
			if err != nil {
				return nil, err
			}
			changed(v.From)
			changed(v.To)
		}
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	if part.Backward {
		slices.Reverse(revisions)
	}
	return revisions, nil
}
