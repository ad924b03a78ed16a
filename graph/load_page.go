package graph

import (
	"slices"

	"koine/kg"
)

// loadStatementPages loads a field `out` or `in` of the entities: one page each, with the
// statements of all pages loaded together.
func (l *loader) loadStatementPages(plan *entityPlan, field int, nodes []entityNode) error {
	f := &plan.fields[field]
	c := f.page
	pattern, known, err := idPattern(l.snapshot, c.statementMatch.pattern)
	if err != nil {
		return err
	}
	pages := make([]*page, len(nodes))
	made := make([]page, len(nodes))
	starts := make([]int, len(nodes)+1)
	from := l
	var lister *statementLister
	var rows []kg.Row
	for i := range nodes {
		pages[i] = &made[i]
		pages[i].connection = c
		bound := c.bound
		if c.cursors || c.after != nil || l.run.cutter != nil {
			bound = bound.forEntity(nodes[i].subject.name)
		}
		var after *kg.IDQuad
		if c.after != nil {
			if from, after, err = l.resumeStatements(c, bound); err != nil {
				return err
			}
		}
		p, any := joinPattern(pattern, f.direction, nodes[i].subject.id)
		if l.run.cutter != nil {
			if err := from.closeStatements(pages[i], p, known && any, after, bound); err != nil {
				return err
			}
		} else if known && any {
			if lister == nil {
				lister = newStatementLister(from.snapshot, c, p)
				defer lister.close()
			}
			g, err := lister.listPage(p, after)
			if err != nil {
				return err
			}
			from.fillPage(pages[i], g, bound)
			rows = lister.rows
		}
		if err := from.groupStatements(c, p, known && any, pages[i]); err != nil {
			return err
		}
		starts[i+1] = len(rows)
		nodes[i].slots[field].page = pages[i]
	}
	if l.run.cutter != nil {
		return nil
	}
	return from.shareStatements(c, rows, pages, starts)
}

// joinPattern returns the pattern for the statements of one entity. It returns
// false if the condition fixes that side to another entity.
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

// reopenSnapshot returns a loader at the revision of the connection's cursor, and the
// cursor's key, which is empty at the beginning of the list.
func (l *loader) reopenSnapshot(c *connection, bound cursorBound, keyBytes int) (*loader, []byte, error) {
	at, err := l.engine.unsealCursor(*c.after, bound, keyBytes)
	if err != nil {
		return l, nil, err
	}
	s, err := l.run.openAt(l.ctx, c.view, at)
	if err != nil {
		return l, nil, err
	}
	return newLoader(l.ctx, l.run, s, l.view), at.key, nil
}

// resumeStatements opens the snapshot of a statement connection's cursor and returns the
// statement after which the page begins.
func (l *loader) resumeStatements(c *connection, bound cursorBound) (*loader, *kg.IDQuad, error) {
	l, key, err := l.reopenSnapshot(c, bound, statementKeyBytes)
	if err != nil || len(key) == 0 {
		return l, nil, err
	}
	after := parseQuadKey(key)
	return l, &after, nil
}

func (l *loader) fillPage(g *page, found listing[kg.Row], bound cursorBound) {
	g.size, g.more, g.total = len(found.keys), found.more, found.total
	if g.connection.cursors {
		g.cursors = make([]string, len(found.keys))
		for i, row := range found.keys {
			g.cursors[i] = l.engine.sealCursor(l.snapshot, bound, quadKey(row.IDQuad))
		}
	}
}

// shareStatements loads the statements of several pages together.
func (l *loader) shareStatements(c *connection, rows []kg.Row, pages []*page, starts []int) error {
	for _, selection := range c.statements {
		nodes, err := l.loadStatements(selection, rows)
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
		if l, after, err = l.resumeStatements(c, c.bound); err != nil {
			return nil, err
		}
	}
	g := &page{connection: c}
	p, known, err := c.statementMatch.lookupPattern(l.snapshot)
	if err == nil {
		err = l.groupStatements(c, p, known, g)
	}
	if err == nil && l.run.cutter != nil {
		return g, l.closeStatements(g, p, known, after, c.bound)
	}
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
		var err error
		if l, after, err = l.resumeEntity(c, c.bound); err != nil {
			return nil, err
		}
	}
	if l.run.cutter != nil {
		return l.closeEntities(c, after)
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
			g.cursors = append(g.cursors, l.engine.sealCursor(l.snapshot, c.bound, slices.Clone(id[:])))
		}
	}
	for _, selection := range c.entities {
		nodes, err := l.loadEntities(selection, refs)
		if err != nil {
			return nil, err
		}
		g.entities = append(g.entities, nodes)
	}
	return g, l.groupEntities(c, scanCandidates(l.snapshot, c.entityMatch, nil), g)
}
