package knowledge

import (
	"iter"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/internal/query"
	"koine/internal/query/path"
	"koine/kg"
)

// parsePath parses the argument `path`.
func (p *Planner) parsePath(text string) (*path.Path, error) {
	w, err := path.Parse(text, p.run.Reader.Prefixes)
	if err != nil {
		return nil, kg.AsError(p.run.TellPrefixed(p.ctx, err)).At("path")
	}
	return w, nil
}

// planFollow plans Entity.follow.
func (b entityFieldPlan) planFollow(f graphql.CollectedField) error {
	p, field := b.planner, b.field
	args, err := coerceArgs(p, f, CoerceEntityFollowArgs)
	if err != nil {
		return err
	}
	field.kind = entityFollow
	if field.way, err = p.parsePath(args.Path); err != nil {
		return err
	}
	field.page, err = p.planEntitiesMatching(p.compiler().Ends, f, entityListArgs{Where: args.Where, Page: PageArgs{First: args.First, After: args.After}})
	if err == nil && args.Where == nil && len(field.page.groups) == 0 {
		field.page.entityList.Match, err = query.Compiler{}.Ends(nil) // without the request, so that the plan can be kept
	}
	return err
}

// followPath returns the nodes that a path reaches from each of the entities, in id
// order. All entities are evaluated together, level by level.
func (l *loader) followPath(w *path.Path, nodes []entityNode) ([][]kg.ID, error) {
	b, err := w.Bind(l.snapshot, path.Options{Nodes: l.reader.Limits.PathNodes, Statements: l.reader.Limits.Reads})
	if err != nil {
		return nil, err
	}
	starts := make([]kg.ID, len(nodes))
	for i := range nodes {
		starts[i] = nodes[i].ref.id
	}
	out := make([][]kg.ID, len(nodes))
	for end, err := range b.ForwardAll(starts) {
		if err != nil {
			return nil, err
		}
		out[end.Start] = append(out[end.Start], end.ID)
	}
	for _, ids := range out {
		slices.SortFunc(ids, kg.ID.Compare)
	}
	return out, nil
}

// loadFollowed loads a field `follow` of the entities: one page each, with the
// entities of all pages loaded together.
func (l *loader) loadFollowed(plan *entityPlan, field int, nodes []entityNode) (err error) {
	c := plan.fields[field].page
	from, after := l, make([]*kg.ID, len(nodes))
	for i := range nodes {
		if c.after != nil {
			if from, after[i], err = l.resumeEntity(c, l.boundOf(c, &nodes[i])); err != nil {
				return err
			}
		}
	}
	led, err := from.followPath(plan.fields[field].way, nodes)
	if err != nil {
		return err
	}
	x, err := c.entityList.Ends(from.snapshot)
	if err != nil {
		return err
	}
	defer x.Close()
	var refs []entityRef
	pages := make([]*page, len(nodes))
	starts := make([]int, len(nodes)+1)
	for i := range nodes {
		g := &page{connection: c}
		pages[i], nodes[i].slots[field].page = g, g
		bound := l.boundOf(c, &nodes[i])
		ids := slices.DeleteFunc(led[i], func(id kg.ID) bool { return !id.IsResource() })
		if err := from.loadGroups(c, g, func(plan *groupPlan) ([]query.Group, error) { return x.Group(ids, plan.entities) }); err != nil {
			return err
		}
		if l.run.cutter != nil {
			if err := from.closeFollowed(c, g, ids, after[i], bound); err != nil {
				return err
			}
			continue
		}
		found, err := x.Page(ids, after[i])
		if err != nil {
			return err
		}
		fillPage(from, g, found, bound, idKey)
		for _, id := range found.Keys {
			refs = append(refs, entityRef{id: id})
		}
		starts[i+1] = len(refs)
	}
	if l.run.cutter != nil {
		return nil
	}
	return from.shareEntities(c, refs, pages, starts)
}

// shareEntities loads the entities of several pages together.
func (l *loader) shareEntities(c *connection, refs []entityRef, pages []*page, starts []int) error {
	for _, selection := range c.entities {
		nodes, err := l.loadEntities(selection, refs)
		if err != nil {
			return err
		}
		for i, g := range pages {
			g.entities = append(g.entities, nodes[starts[i]:starts[i+1]])
		}
	}
	return nil
}

// resumeEntity opens the snapshot of an entity connection's cursor and returns
// the entity after which the page begins.
func (l *loader) resumeEntity(c *connection, bound CursorBound) (*loader, *kg.ID, error) {
	l, key, err := l.reopenSnapshot(c, bound, entityKeyBytes)
	if err != nil || len(key) == 0 {
		return l, nil, err
	}
	after := kg.ID(key)
	return l, &after, nil
}

// closeFollowed prepares a page of entities reached by a path to be filled by
// a cutter.
func (l *loader) closeFollowed(c *connection, g *page, ids []kg.ID, after *kg.ID, bound CursorBound) error {
	if c.total {
		x, err := c.entityList.Ends(l.snapshot)
		if err != nil {
			return err
		}
		defer x.Close()
		if err := l.countInto(g, func() (uint64, error) { return x.Count(ids) }); err != nil {
			return err
		}
	}
	var begin []byte
	if after != nil {
		begin = after[:]
	}
	f := l.entityFeed(c, after).(*scanFeed[kg.ID])
	f.scan = func(stood []byte, looked func(kg.ID) bool) iter.Seq2[kg.ID, error] {
		from := after
		if stood != nil {
			id := kg.ID(stood)
			from = &id
		}
		return func(yield func(kg.ID, error) bool) {
			x, err := c.entityList.Ends(l.snapshot)
			if err != nil {
				yield(kg.ID{}, err)
				return
			}
			defer x.Close()
			x.Scan(ids, from, looked)(yield)
		}
	}
	return l.closePage(g, f, c.entityList.Match.MatchesAll(), entityKeyBytes, l.cursorSealer(bound, begin))
}
