package knowledge

import (
	"koine/internal/query"
	"koine/internal/query/path"
	"koine/kg"
)

// loadStatementPages loads a field `out` or `in` of the entities: one page each, with the
// statements of all pages loaded together.
func (l *loader) loadStatementPages(plan *entityPlan, field int, nodes []entityNode) error {
	f := &plan.fields[field]
	c := f.page
	pattern, known, err := l.snapshot.PatternIDs(c.statementList.Match.Pattern)
	if err != nil {
		return err
	}
	pages := make([]*page, len(nodes))
	made := make([]page, len(nodes))
	starts := make([]int, len(nodes)+1)
	from := l
	var found *query.Pages
	var rows []kg.Row
	for i := range nodes {
		pages[i] = &made[i]
		pages[i].connection = c
		bound := l.boundOf(c, &nodes[i])
		var after *kg.IDQuad
		if c.after != nil {
			if from, after, err = l.resumeStatements(c, bound); err != nil {
				return err
			}
		}
		p, any := joinPattern(pattern, f.direction, nodes[i].ref.id)
		if l.run.cutter != nil {
			if err := from.closeStatements(pages[i], p, known && any, after, bound); err != nil {
				return err
			}
		} else if known && any {
			if found == nil {
				found = c.statementList.Pages(from.snapshot, p)
				defer found.Close()
			}
			g, err := found.Page(p, after)
			if err != nil {
				return err
			}
			fillPage(from, pages[i], g, bound, rowKey)
			rows = found.Rows
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

// boundOf returns the bound of the cursors of an entity's page.
func (l *loader) boundOf(c *connection, n *entityNode) CursorBound {
	if !c.cursors && c.after == nil && l.run.cutter == nil {
		return c.bound // no cursor is read or made
	}
	return c.bound.ForEntity(n.ref.name)
}

// joinPattern returns the pattern for the statements of one entity. It returns
// false if the condition fixes that side to another entity.
func joinPattern(p kg.IDPattern, d path.Direction, id kg.ID) (kg.IDPattern, bool) {
	side := &p.Subject
	if d == path.In {
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
func (l *loader) reopenSnapshot(c *connection, bound CursorBound, keyBytes int) (*loader, []byte, error) {
	at, err := l.reader.unsealCursor(*c.after, bound, keyBytes)
	if err != nil {
		return l, nil, InDirection(err, c.backward)
	}
	s, err := l.run.OpenAt(l.ctx, c.view, at)
	if err != nil {
		return l, nil, InDirection(err, c.backward)
	}
	return newLoader(l.ctx, l.run, s, l.view), at.Key, nil
}

// resumeStatements opens the snapshot of a statement connection's cursor and returns the
// statement after which the page begins.
func (l *loader) resumeStatements(c *connection, bound CursorBound) (*loader, *kg.IDQuad, error) {
	l, key, err := l.reopenSnapshot(c, bound, statementKeyBytes)
	if err != nil || len(key) == 0 {
		return l, nil, err
	}
	after := parseQuadKey(key)
	return l, &after, nil
}

// fillPage sets the size and the cursors of a page. key returns the key of an
// element in a cursor.
func fillPage[K any](l *loader, g *page, found query.Page[K], bound CursorBound, key func(K) []byte) {
	g.size, g.more, g.total = len(found.Keys), found.More, found.Total
	if g.connection.cursors {
		g.cursors = make([]string, len(found.Keys))
		for i, k := range found.Keys {
			g.cursors[i] = l.reader.SealCursor(l.snapshot, bound, key(k))
		}
	}
}

func rowKey(row kg.Row) []byte { return quadKey(row.IDQuad) }

func idKey(id kg.ID) []byte { return id[:] }

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
	p, known, err := c.statementList.Match.Lookup(l.snapshot)
	if err == nil {
		err = l.groupStatements(c, p, known, g)
	}
	if err == nil && l.run.cutter != nil {
		return g, l.closeStatements(g, p, known, after, c.bound)
	}
	if err != nil || !known {
		return g, l.orEmpty(c, g, err)
	}
	found, err := c.statementList.Page(l.snapshot, p, after)
	if err != nil {
		return nil, err
	}
	fillPage(l, g, found, c.bound, rowKey)
	return g, l.shareStatements(c, found.Keys, []*page{g}, []int{0, len(found.Keys)})
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
	found, err := c.entityList.Page(l.snapshot, after)
	if err != nil {
		return nil, err
	}
	g := &page{connection: c}
	fillPage(l, g, found, c.bound, idKey)
	refs := make([]entityRef, len(found.Keys))
	for i, id := range found.Keys {
		refs[i].id = id
	}
	if err := l.shareEntities(c, refs, []*page{g}, []int{0, len(refs)}); err != nil {
		return nil, err
	}
	return g, l.groupEntities(c, g)
}
