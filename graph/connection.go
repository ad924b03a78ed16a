package graph

import (
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/kg"
)

// connection is what a selection set asks of a page of entities or statements,
// and which page it is.
type connection struct {
	fields []connectionField
	// What the page must know beside its elements.
	total, cursors bool
	// selections are what is asked of the elements: one for each `nodes` and
	// each `node` of `edges`.
	entities   []*entityPlan
	statements []*statementPlan

	first int
	after *Cursor
	limit int // bytes of an answer at which writing stops
	bound cursorBound
	view  kg.View // that cursors are bound to

	statementMatch statementMatch
	statementOrder ordering[*fact]
	entityMatch    *entityMatch
	entityOrder    ordering[*subject]
}

type connectionKind uint8

const (
	connectionTypename connectionKind = iota
	connectionEdges
	connectionNodes
	connectionPageInfo
	connectionTotal
)

type connectionField struct {
	kind      connectionKind
	key       []byte
	typename  string
	selection int // of nodes
	edge      []edgeField
	info      []edgeField // of pageInfo
}

// edgeField is a field of an edge or of PageInfo.
type edgeField struct {
	key       []byte
	name      string
	selection int // of node
}

// connectionTypes are the names and implementors of the types of a connection.
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

// selection plans what is asked of the elements, and gives its index.
func (p *planner) selection(c *connection, set ast.SelectionSet) (int, error) {
	if c.entityMatch != nil {
		plan, err := p.entity(set)
		c.entities = append(c.entities, plan)
		return len(c.entities) - 1, err
	}
	plan, err := p.statement(set)
	c.statements = append(c.statements, plan)
	return len(c.statements) - 1, err
}

// connection plans the fields of a connection.
func (p *planner) connection(c *connection, set ast.SelectionSet, types connectionTypes) error {
	return p.eachField(set, types.implementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := connectionField{key: key, typename: types.name}
		switch f.Name {
		case "__typename":
		case "edges":
			field.kind, field.typename = connectionEdges, types.edgeName
			field.edge, err = p.edge(c, f.Selections, types)
		case "nodes":
			field.kind = connectionNodes
			field.selection, err = p.selection(c, f.Selections)
		case "pageInfo":
			field.kind = connectionPageInfo
			field.info, err = p.pageInfo(c, f.Selections)
		case "totalCount":
			field.kind, c.total = connectionTotal, true
		default:
			return unplanned(f)
		}
		c.fields = append(c.fields, field)
		return err
	})
}

func (p *planner) edge(c *connection, set ast.SelectionSet, types connectionTypes) (fields []edgeField, err error) {
	err = p.eachField(set, types.edges, func(f graphql.CollectedField, key []byte) (err error) {
		field := edgeField{key: key, name: f.Name}
		switch f.Name {
		case "__typename":
		case "cursor":
			c.cursors = true
		case "node":
			field.selection, err = p.selection(c, f.Selections)
		default:
			return unplanned(f)
		}
		fields = append(fields, field)
		return err
	})
	return fields, err
}

func (p *planner) pageInfo(c *connection, set ast.SelectionSet) (fields []edgeField, err error) {
	err = p.eachField(set, pageInfoImplementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, edgeField{key: key, name: f.Name})
		switch f.Name {
		case "startCursor", "endCursor":
			c.cursors = true
		case "__typename", "hasNextPage", "hasPreviousPage":
		default:
			return unplanned(f)
		}
		return nil
	})
	return fields, err
}

// paging reads the arguments that all connections have.
func (p *planner) paging(c *connection, f graphql.CollectedField, args map[string]any) (err error) {
	c.after = argument[*Cursor](args, "after")
	c.first, err = p.run.engine.limits.pageSize(argument[*int](args, "first"), DefaultPageSize)
	if err != nil {
		return err
	}
	c.view, c.limit = p.view, p.run.engine.limits.ResultBytes
	c.bound, err = p.bind(f)
	return err
}

func (p *planner) statementConnection(f graphql.CollectedField, args map[string]any) (c *connection, err error) {
	c = &connection{}
	if err := p.paging(c, f, args); err != nil {
		return nil, err
	}
	if c.statementMatch, err = matchStatement(argument[*StatementFilter](args, "where")); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	c.statementOrder = orderStatements(argument[[]StatementOrder](args, "orderBy"))
	return c, p.connection(c, f.Selections, statementConnections)
}

func (p *planner) entityConnection(f graphql.CollectedField, args map[string]any) (c *connection, err error) {
	c = &connection{}
	if err := p.paging(c, f, args); err != nil {
		return nil, err
	}
	labels := p.run.engine.labels
	if c.entityMatch, err = matchEntity(argument[*EntityFilter](args, "where"), labels); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	if c.entityOrder, err = orderEntities(argument[[]EntityOrder](args, "orderBy"), c.entityMatch, labels); err != nil {
		return nil, kg.AsError(err).At("orderBy")
	}
	return c, p.connection(c, f.Selections, entityConnections)
}

// page is one page of a connection, loaded.
type page struct {
	connection *connection
	entities   [][]*entityNode   // of each selection
	statements [][]statementNode // of each selection
	size       int
	cursors    []string
	more       bool
	total      uint64
}

func (g *page) write(b []byte) []byte {
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
		case connectionEdges:
			b = g.writeList(b, func(b []byte, k int) []byte { return g.writeEdge(b, f, k) })
		case connectionNodes:
			b = g.writeList(b, func(b []byte, k int) []byte { return g.writeNode(b, f.selection, k) })
		case connectionPageInfo:
			b = g.writeInfo(b, f.info)
		case connectionTotal:
			b = appendUint(b, g.total)
		}
	}
	return append(b, '}')
}

// writeList stops when the answer has become too large, which reading.answer
// then says: what was loaded once may be written many times, and names of
// fields count as well.
func (g *page) writeList(b []byte, element func(b []byte, k int) []byte) []byte {
	b = append(b, '[')
	for k := range g.size {
		if len(b) > g.connection.limit {
			break
		}
		if k > 0 {
			b = append(b, ',')
		}
		b = element(b, k)
	}
	return append(b, ']')
}

func (g *page) writeNode(b []byte, selection, k int) []byte {
	if g.entities != nil {
		return g.entities[selection][k].write(b)
	}
	return g.statements[selection][k].write(b)
}

func (g *page) writeEdge(b []byte, of *connectionField, k int) []byte {
	b = append(b, '{')
	for i, f := range of.edge {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		switch f.name {
		case "cursor":
			b = appendString(b, g.cursors[k])
		case "node":
			b = g.writeNode(b, f.selection, k)
		default:
			b = appendString(b, of.typename)
		}
	}
	return append(b, '}')
}

func (g *page) writeInfo(b []byte, fields []edgeField) []byte {
	cursor := func(b []byte, k int) []byte {
		if g.size == 0 {
			return append(b, "null"...)
		}
		return appendString(b, g.cursors[k])
	}
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		switch f.name {
		case "hasNextPage":
			b = strconv.AppendBool(b, g.more)
		case "hasPreviousPage":
			b = strconv.AppendBool(b, g.connection.after != nil)
		case "startCursor":
			b = cursor(b, 0)
		case "endCursor":
			b = cursor(b, g.size-1)
		default:
			b = append(b, `"PageInfo"`...)
		}
	}
	return append(b, '}')
}
