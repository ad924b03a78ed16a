package graph

import (
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/query"
	"koine/kg"
)

// connection is the plan of a page of entities or statements: its selection
// set and its position in the list.
type connection struct {
	fields []connectionField
	// The page has to know these beside its elements.
	total, cursors bool
	// Plans for the elements: one for each `nodes` and each `node` of `edges`.
	entities   []*entityPlan
	statements []*statementPlan
	groups     []*groupPlan // one for each `groups`

	first int
	after *Cursor
	limit int // bytes of an answer at which writing stops
	bound cursorBound
	// path is the connection's path in the answer. lists holds the lengths of
	// its prefixes after which the index of a list element is inserted.
	path  ast.Path
	lists []int
	view  kg.View // the view that cursors are bound to

	statementList query.StatementList
	entityList    query.EntityList // without a match if the elements are no entities
	// element plans a selection of elements of another kind and returns its
	// index.
	element func(set ast.SelectionSet) (int, error)
	// events plans the selection of a field `events`, which also lists the
	// elements that no other list has.
	events func(set ast.SelectionSet) (int, error)
	// extra plans a field that only this connection has and returns its index.
	extra func(f graphql.CollectedField) (int, error)
	// otherGroups compiles the groups of elements of another kind.
	otherGroups func(*groupPlan, map[string]any, query.GroupOptions) error
}

type connectionKind uint8

const (
	connectionTypename connectionKind = iota
	connectionEdges
	connectionNodes
	connectionPageInfo
	connectionTotal
	connectionGroups
	connectionRevision // from, to
	connectionExtra    // a field of one connection only
)

type connectionField struct {
	kind      connectionKind
	key       []byte
	typename  string
	selection int // index of the plan of `nodes`, or of the groups
	edge      []edgeField
	info      []edgeField // of pageInfo
	events    bool        // the list has all elements
}

// edgeField is a field of an edge or of PageInfo.
type edgeField struct {
	key       []byte
	name      string
	selection int // index of the plan of `node`
}

// connectionTypes are the type names and implementors of a connection.
type connectionTypes struct {
	name, edgeName      string
	implementors, edges []string
}

var entityConnections = connectionTypes{
	name: "EntityConnection", implementors: entityConnectionImplementors,
	edgeName: "EntityEdge", edges: entityEdgeImplementors,
}

var statementConnections = connectionTypes{
	name: "StatementConnection", implementors: statementConnectionImplementors,
	edgeName: "StatementEdge", edges: statementEdgeImplementors,
}

// planElements plans a selection of elements and returns its index.
func (p *planner) planElements(c *connection, set ast.SelectionSet) (int, error) {
	if c.element != nil {
		return c.element(set)
	}
	if c.entityList.Match != nil {
		plan, err := p.planEntity(set)
		c.entities = append(c.entities, plan)
		return len(c.entities) - 1, err
	}
	plan, err := p.planStatement(set)
	c.statements = append(c.statements, plan)
	return len(c.statements) - 1, err
}

// planConnection plans the fields of a connection.
func (p *planner) planConnection(c *connection, set ast.SelectionSet, types connectionTypes) error {
	c.path, c.lists = slices.Clone(p.path), slices.Clone(p.lists)
	return p.eachField(set, types.implementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := connectionField{key: key, typename: types.name}
		switch f.Name {
		case "__typename":
		case "edges":
			field.kind, field.typename = connectionEdges, types.edgeName
			err = p.inList(func() (err error) {
				field.edge, err = p.planEdge(c, f.Selections, types)
				return err
			})
		case "nodes":
			field.kind = connectionNodes
			err = p.inList(func() (err error) {
				field.selection, err = p.planElements(c, f.Selections)
				return err
			})
		case "events":
			if c.events == nil {
				return unplannedField(f)
			}
			field.kind, field.events = connectionNodes, true
			err = p.inList(func() (err error) {
				field.selection, err = c.events(f.Selections)
				return err
			})
		case "pageInfo":
			field.kind = connectionPageInfo
			field.info, err = p.planPageInfo(c, f.Selections)
		case "totalCount":
			field.kind, c.total = connectionTotal, true
		case "groups":
			field.kind = connectionGroups
			field.selection, err = p.planGroups(c, f)
		case "from", "to":
			field.kind, field.typename = connectionRevision, f.Name
		default:
			if c.extra == nil {
				return unplannedField(f)
			}
			field.kind = connectionExtra
			field.selection, err = c.extra(f)
		}
		c.fields = append(c.fields, field)
		return err
	})
}

func (p *planner) planEdge(c *connection, set ast.SelectionSet, types connectionTypes) (fields []edgeField, err error) {
	err = p.eachField(set, types.edges, func(f graphql.CollectedField, key []byte) (err error) {
		field := edgeField{key: key, name: f.Name}
		switch f.Name {
		case "__typename":
		case "cursor":
			c.cursors = true
		case "node":
			field.selection, err = p.planElements(c, f.Selections)
		default:
			return unplannedField(f)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

func (p *planner) planPageInfo(c *connection, set ast.SelectionSet) (fields []edgeField, err error) {
	err = p.eachField(set, pageInfoImplementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, edgeField{key: key, name: f.Name})
		switch f.Name {
		case "startCursor", "endCursor":
			c.cursors = true
		case "__typename", "hasNextPage", "hasPreviousPage", "truncated":
		default:
			return unplannedField(f)
		}
		return nil
	})
	return fields, err
}

// planPaging reads the arguments that all connections have.
func (p *planner) planPaging(c *connection, f graphql.CollectedField, args map[string]any) (err error) {
	c.after = argumentOf[*Cursor](args, "after")
	c.first, err = p.run.engine.limits.pageSize(argumentOf[*int](args, "first"), DefaultPageSize)
	if err != nil {
		return err
	}
	c.view, c.limit = p.view, p.run.engine.limits.ResultBytes
	c.bound, err = p.bindCursor(f)
	return err
}

func (p *planner) planStatementConnection(f graphql.CollectedField, args map[string]any) (c *connection, err error) {
	c = &connection{}
	if err := p.planPaging(c, f, args); err != nil {
		return nil, err
	}
	if c.statementList.Match, err = p.compiler().Statements(argumentOf[*query.StatementFilter](args, "where")); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	c.statementList.Order = query.OrderStatements(argumentOf[[]query.StatementOrder](args, "orderBy"))
	err = p.planConnection(c, f.Selections, statementConnections)
	c.statementList.First, c.statementList.Total = c.first, c.total
	c.statementList.Assertions = slices.ContainsFunc(c.statements, func(p *statementPlan) bool { return p.assertions })
	return c, err
}

func (p *planner) planEntityConnection(f graphql.CollectedField, args map[string]any) (*connection, error) {
	return p.planEntitiesMatching(p.compiler().Entities, f, args)
}

// planEntitiesMatching plans a connection of entities with a condition compiled by
// match.
func (p *planner) planEntitiesMatching(
	match func(*query.EntityFilter) (*query.EntityMatch, error), f graphql.CollectedField, args map[string]any,
) (c *connection, err error) {
	c = &connection{}
	if err := p.planPaging(c, f, args); err != nil {
		return nil, err
	}
	if c.entityList.Match, err = match(argumentOf[*query.EntityFilter](args, "where")); err != nil {
		return nil, kg.AsError(p.run.tellPrefixed(p.ctx, err)).At("where")
	}
	if c.entityList.Order, err = c.entityList.Match.OrderBy(argumentOf[[]query.EntityOrder](args, "orderBy")); err != nil {
		return nil, kg.AsError(p.run.tellPrefixed(p.ctx, err)).At("orderBy")
	}
	err = p.planConnection(c, f.Selections, entityConnections)
	c.entityList.First, c.entityList.Total = c.first, c.total
	return c, err
}

// page is a loaded page of a connection.
type page struct {
	connection *connection
	entities   [][]*entityNode   // per selection
	statements [][]statementNode // per selection
	groups     []*groupList
	size       int
	cursors    []string
	more       bool
	truncated  bool // by a budget
	total      uint64
	cut        *cut // nil without a budget
	// node writes an element of another kind.
	node func(b []byte, selection, k int) []byte
	// eventOnly reports whether only a field `events` lists the element. nil
	// means that no element is such.
	eventOnly func(k int) bool
	// extra writes a field that only this connection has.
	extra func(b []byte, i int) []byte
	// end is the cursor after the page if that is not the last element's.
	end string
	// from and to are the revisions of a page of differences.
	from, to kg.Revision
}

func (g *page) write(b []byte) []byte {
	if g.cut == nil || g.cut.opened {
		return g.writeFields(b)
	}
	from := len(b)
	g.cut.cutter.queuePage(g)
	b = g.writeFields(b)
	g.cut.base = len(b) - from
	g.cut.fixed = g.cut.base - g.infoBytes(0, g.more, g.truncated)
	return b
}

func (g *page) writeFields(b []byte) []byte {
	b = append(b, '{')
	for i := range g.connection.fields {
		if i > 0 {
			b = append(b, ',')
		}
		f := &g.connection.fields[i]
		b = append(b, f.key...)
		switch f.kind {
		case connectionTypename:
			b = appendString(b, f.typename)
		case connectionEdges, connectionNodes:
			b = g.writeElements(b, i)
		case connectionPageInfo:
			b = g.writeInfo(b, f.info)
		case connectionTotal:
			b = appendUint(b, g.total)
		case connectionGroups:
			b = g.groups[f.selection].write(b)
		case connectionExtra:
			b = g.extra(b, f.selection)
		case connectionRevision:
			revision := g.from
			if f.typename == "to" {
				revision = g.to
			}
			b = appendUint(b, uint64(revision))
		}
	}
	return append(b, '}')
}

// writeElements writes one of the fields that list the elements.
func (g *page) writeElements(b []byte, field int) []byte {
	if g.cut != nil {
		return append(append(append(b, '['), g.cut.texts[field]...), ']')
	}
	f := &g.connection.fields[field]
	if f.kind == connectionNodes {
		return g.writeList(b, f, func(b []byte, k int) []byte { return g.writeNode(b, f.selection, k) })
	}
	return g.writeList(b, f, func(b []byte, k int) []byte {
		return f.writeEdge(b, func(b []byte) []byte { return appendString(b, g.cursors[k]) },
			func(b []byte, selection int) []byte { return g.writeNode(b, selection, k) })
	})
}

// writeList stops when the answer has become too large, which
// reading.storeAnswer then reports: an element that is loaded once may be
// written many times, and the names of fields count as well.
func (g *page) writeList(b []byte, f *connectionField, element func(b []byte, k int) []byte) []byte {
	b = append(b, '[')
	first := true
	for k := range g.size {
		if len(b) > g.connection.limit {
			break
		}
		if !f.events && g.eventOnly != nil && g.eventOnly(k) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = element(b, k)
	}
	return append(b, ']')
}

func (g *page) writeNode(b []byte, selection, k int) []byte {
	if g.node != nil {
		return g.node(b, selection, k)
	}
	if g.entities != nil {
		return g.entities[selection][k].write(b)
	}
	return g.statements[selection][k].write(b)
}

func (of *connectionField) writeEdge(b []byte, cursor func([]byte) []byte, node func(b []byte, selection int) []byte) []byte {
	return appendFields(b, of.edge, func(b []byte, _ int, f *edgeField) []byte {
		b = append(b, f.key...)
		switch f.name {
		case "cursor":
			return cursor(b)
		case "node":
			return node(b, f.selection)
		}
		return appendString(b, of.typename)
	})
}

// endCursors returns the cursors of a page, "" for none.
func (g *page) endCursors() (start, end string) {
	switch {
	case g.cut != nil:
		start, end = g.cut.endCursors(g.truncated)
	case g.size > 0:
		start, end = g.cursors[0], g.cursors[g.size-1]
	}
	if g.end != "" {
		end = g.end
	}
	return start, end
}

func (g *page) writeInfo(b []byte, fields []edgeField) []byte {
	var start, end string
	if g.connection.cursors {
		start, end = g.endCursors()
	}
	return appendFields(b, fields, func(b []byte, _ int, f *edgeField) []byte {
		b = append(b, f.key...)
		switch f.name {
		case "hasNextPage":
			return strconv.AppendBool(b, g.more)
		case "truncated":
			return strconv.AppendBool(b, g.truncated)
		case "hasPreviousPage":
			return strconv.AppendBool(b, g.connection.after != nil)
		case "startCursor":
			return appendOptional(b, start)
		case "endCursor":
			return appendOptional(b, end)
		}
		return append(b, `"PageInfo"`...)
	})
}
