package graph

import (
	"slices"

	"koine/kg"
)

// pages loads a field `out` or `in` of the entities: one page each, whose
// statements are then loaded together.
func (l *loader) pages(plan *entityPlan, field int, nodes []entityNode) error {
	f := &plan.fields[field]
	c := f.page
	pattern, known, err := idPattern(l.snapshot, c.statementMatch.pattern)
	if err != nil {
		return err
	}
	var rows []kg.Row
	pages := make([]*page, len(nodes))
	starts := make([]int, len(nodes)+1)
	from := l
	for i := range nodes {
		pages[i] = &page{connection: c}
		bound := c.bound.of(nodes[i].subject.name)
		var after *kg.IDQuad
		if c.after != nil {
			if from, after, err = l.resume(c, bound); err != nil {
				return err
			}
		}
		p, any := joinPattern(pattern, f.direction, nodes[i].subject.id)
		if known && any {
			g, err := listStatements(from.snapshot, c, p, after)
			if err != nil {
				return err
			}
			from.fillPage(pages[i], g, bound)
			rows = append(rows, g.keys...)
		}
		starts[i+1] = len(rows)
		nodes[i].slots[field].page = pages[i]
	}
	return from.shareStatements(c, rows, pages, starts)
}

// joinPattern is the pattern for the statements of one entity; false when the
// condition fixes that side to another one.
func joinPattern(p kg.IDPattern, d Direction, id kg.ID) (kg.IDPattern, bool) {
	side := &p.Subject
	if d == DirectionIn {
		side = &p.Object
	}
	if *side != (kg.ID{}) && *side != id || id == (kg.ID{}) {
		return p, false
	}
	*side = id
	return p, true
}

// resume finds the snapshot and the place that the connection's cursor names.
func (l *loader) resume(c *connection, bound cursorBound) (*loader, *kg.IDQuad, error) {
	at, err := l.engine.unseal(*c.after, bound, statementKeyBytes)
	if err != nil {
		return l, nil, err
	}
	s, err := l.run.openAt(l.ctx, c.view, at)
	if err != nil {
		return l, nil, err
	}
	after := parseQuadKey(at.key)
	return newLoader(l.ctx, l.run, s), &after, nil
}

func (l *loader) fillPage(g *page, found listing[kg.Row], bound cursorBound) {
	g.size, g.more, g.total = len(found.keys), found.more, found.total
	if g.connection.cursors {
		g.cursors = make([]string, len(found.keys))
		for i, row := range found.keys {
			g.cursors[i] = l.engine.seal(l.snapshot, bound, quadKey(row.IDQuad))
		}
	}
}

// shareStatements loads the statements of several pages together.
func (l *loader) shareStatements(c *connection, rows []kg.Row, pages []*page, starts []int) error {
	for _, selection := range c.statements {
		nodes, err := l.statements(selection, rows)
		if err != nil {
			return err
		}
		for i, g := range pages {
			g.statements = append(g.statements, nodes[starts[i]:starts[i+1]])
		}
	}
	return nil
}

// statementPage loads a page of all statements.
func (l *loader) statementPage(c *connection) (*page, error) {
	var after *kg.IDQuad
	var err error
	if c.after != nil {
		if l, after, err = l.resume(c, c.bound); err != nil {
			return nil, err
		}
	}
	g := &page{connection: c}
	p, known, err := idPattern(l.snapshot, c.statementMatch.pattern)
	if err != nil || !known {
		return g, l.orEmpty(c, g, err)
	}
	found, err := listStatements(l.snapshot, c, p, after)
	if err != nil {
		return nil, err
	}
	l.fillPage(g, found, c.bound)
	return g, l.shareStatements(c, found.keys, []*page{g}, []int{0, len(found.keys)})
}

func (l *loader) orEmpty(c *connection, g *page, err error) error {
	if err != nil {
		return err
	}
	return l.shareStatements(c, nil, []*page{g}, []int{0, 0})
}

// entityPage loads a page of entities.
func (l *loader) entityPage(c *connection) (*page, error) {
	var after *kg.ID
	if c.after != nil {
		at, err := l.engine.unseal(*c.after, c.bound, entityKeyBytes)
		if err != nil {
			return nil, err
		}
		s, err := l.run.openAt(l.ctx, c.view, at)
		if err != nil {
			return nil, err
		}
		l, after = newLoader(l.ctx, l.run, s), new(kg.ID)
		copy(after[:], at.key)
	}
	found, err := listEntities(l.snapshot, c, after)
	if err != nil {
		return nil, err
	}
	g := &page{connection: c, size: len(found.keys), more: found.more, total: found.total}
	refs := make([]entityRef, len(found.keys))
	for i, id := range found.keys {
		refs[i].id = id
		if c.cursors {
			g.cursors = append(g.cursors, l.engine.seal(l.snapshot, c.bound, slices.Clone(id[:])))
		}
	}
	for _, selection := range c.entities {
		nodes, err := l.entities(selection, refs)
		if err != nil {
			return nil, err
		}
		g.entities = append(g.entities, nodes)
	}
	return g, nil
}
