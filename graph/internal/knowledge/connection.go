package knowledge

import (
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/internal/query/pattern"
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

	first    int
	after    *scalar.Cursor // or before, if the page goes backward
	backward bool
	limit    int // bytes of an answer at which writing stops
	bound    CursorBound
	view     kg.View // the view that cursors are bound to; it and bound are zero if none are
	list     string  // the name of the field, for hints

	statementList query.StatementList
	entityList    query.EntityList // without a match if the elements are no entities
	// element plans a selection of elements of another kind and returns its
	// index.
	element func(set ast.SelectionSet) (int, error)
	// events plans the selection of a field `events`, which also lists the
	// elements that no other list has.
	events func(set ast.SelectionSet) (int, error)
	// match is the list if the elements are rows of a pattern.
	match *matchList
	// otherGroups compiles the groups of elements of another kind.
	otherGroups func(*Planner, *groupPlan, graphql.CollectedField) error
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
	connectionFailed
)

type connectionField struct {
	kind      connectionKind
	failed    *fieldError // set if the field cannot be planned
	key       []byte
	typename  string
	selection int // index of the plan of `nodes`, or of the groups
	edge      []edgeField
	info      []scalarField // of pageInfo
	events    bool          // the list has all elements
}

// edgeField is a field of an edge.
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
	name: "EntityConnection", implementors: EntityConnectionImplementors,
	edgeName: "EntityEdge", edges: EntityEdgeImplementors,
}

var statementConnections = connectionTypes{
	name: "StatementConnection", implementors: StatementConnectionImplementors,
	edgeName: "StatementEdge", edges: StatementEdgeImplementors,
}

// planElements plans a selection of elements and returns its index.
func (p *Planner) planElements(c *connection, set ast.SelectionSet) (int, error) {
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
func (p *Planner) planConnection(c *connection, set ast.SelectionSet, types connectionTypes) error {
	return p.EachField(set, types.implementors, func(f graphql.CollectedField, key []byte) error {
		c.fields = append(c.fields, connectionField{key: key, typename: types.name})
		return connectionFieldPlan{p, c, &c.fields[len(c.fields)-1], types}.planNamed(f)
	})
}

// connectionFieldPlan plans a field of a connection. It has a method for each field
// of any of them, which the generated planNamed calls.
type connectionFieldPlan struct {
	planner    *Planner
	connection *connection
	field      *connectionField // the last one of the connection
	types      connectionTypes
}

func (b connectionFieldPlan) planEdges(f graphql.CollectedField) (err error) {
	b.field.kind, b.field.typename = connectionEdges, b.types.edgeName
	b.field.edge, err = b.planner.planEdge(b.connection, f.Selections, b.types)
	return err
}

func (b connectionFieldPlan) planNodes(f graphql.CollectedField) (err error) {
	b.field.kind = connectionNodes
	b.field.selection, err = b.planner.planElements(b.connection, f.Selections)
	return err
}

func (b connectionFieldPlan) planEvents(f graphql.CollectedField) (err error) {
	if b.connection.events == nil {
		return UnplannedField(f)
	}
	b.field.kind, b.field.events = connectionNodes, true
	b.field.selection, err = b.connection.events(f.Selections)
	return err
}

func (b connectionFieldPlan) planPageInfo(f graphql.CollectedField) (err error) {
	b.field.kind = connectionPageInfo
	b.field.info, err = b.planner.planScalars(f.Selections, PageInfoImplementors)
	for _, info := range b.field.info {
		b.connection.cursors = b.connection.cursors || info.name == "startCursor" || info.name == "endCursor"
	}
	return err
}

func (b connectionFieldPlan) planTotalCount(graphql.CollectedField) error {
	b.field.kind, b.connection.total = connectionTotal, true
	return nil
}

func (b connectionFieldPlan) planGroups(f graphql.CollectedField) (err error) {
	b.field.kind = connectionGroups
	if b.field.selection, err = b.planner.planGroups(b.connection, f); err == nil {
		return nil
	}
	if b.field.failed = b.planner.failAlone(f, err); b.field.failed == nil {
		return err
	}
	b.field.kind = connectionFailed
	return nil
}

func (b connectionFieldPlan) planFrom(graphql.CollectedField) error {
	b.field.kind, b.field.typename = connectionRevision, "from"
	return nil
}

func (b connectionFieldPlan) planTo(graphql.CollectedField) error {
	b.field.kind, b.field.typename = connectionRevision, "to"
	return nil
}

func (p *Planner) planEdge(c *connection, set ast.SelectionSet, types connectionTypes) (fields []edgeField, err error) {
	err = p.EachField(set, types.edges, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, edgeField{key: key, name: f.Name})
		return edgeFieldPlan{p, c, &fields[len(fields)-1]}.planNamed(f)
	})
	return fields, err
}

// edgeFieldPlan plans a field of an edge.
type edgeFieldPlan struct {
	planner    *Planner
	connection *connection
	field      *edgeField
}

func (b edgeFieldPlan) planCursor(graphql.CollectedField) error {
	b.connection.cursors = true
	return nil
}

func (b edgeFieldPlan) planNode(f graphql.CollectedField) (err error) {
	b.field.selection, err = b.planner.planElements(b.connection, f.Selections)
	return err
}

// planPaging reads the arguments that all connections have.
func (p *Planner) planPaging(c *connection, f graphql.CollectedField, a PageArgs) (err error) {
	var size *int
	limits := p.run.Reader.Limits
	if size, c.after, c.backward, err = PageDirection(a); err != nil {
		return err
	}
	if c.first, err = limits.CheckFirst(size, limit.DefaultPageSize); err != nil {
		return InDirection(err, c.backward)
	}
	c.list, c.limit = f.Alias, limits.ResultBytes
	return nil
}

// bindPage binds the page to its view, and its cursors to what determines the list.
func (p *Planner) bindPage(c *connection, f graphql.CollectedField) (err error) {
	c.view = p.View
	c.bound, err = p.bindCursor(f)
	return err
}

// bindIfShown is bindPage for a page that has a cursor or shows one, or that a budget may cut.
func (p *Planner) bindIfShown(c *connection, f graphql.CollectedField) error {
	if c.after == nil && !c.cursors && !p.run.Budgeted && p.run.cutter == nil {
		return nil
	}
	return p.bindPage(c, f)
}

// statementListArgs are the arguments of a list of statements.
type statementListArgs struct {
	Where   *query.StatementFilter
	OrderBy []query.StatementOrder
	Page    PageArgs
}

func (p *Planner) planStatementConnection(f graphql.CollectedField, args statementListArgs) (c *connection, err error) {
	c = &connection{}
	if err := p.planPaging(c, f, args.Page); err != nil {
		return nil, err
	}
	if c.statementList.Match, err = p.compiler().Statements(args.Where); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	c.statementList.Order = query.OrderStatements(args.OrderBy)
	if err = p.planConnection(c, f.Selections, statementConnections); err == nil {
		err = p.bindIfShown(c, f)
	}
	c.statementList.First, c.statementList.Total, c.statementList.Backward = c.first, c.total, c.backward
	c.statementList.Assertions = slices.ContainsFunc(c.statements, func(p *statementPlan) bool { return p.assertions })
	return c, err
}

// entityListArgs are the arguments of a list of entities.
type entityListArgs struct {
	Where   *query.EntityFilter
	OrderBy []query.EntityOrder
	Page    PageArgs
}

func (p *Planner) planEntityConnection(f graphql.CollectedField, args entityListArgs) (*connection, error) {
	return p.planEntitiesMatching(p.compiler().Entities, f, args)
}

// planEntitiesMatching plans a connection of entities with a condition compiled by
// match.
func (p *Planner) planEntitiesMatching(
	match func(*query.EntityFilter) (*query.EntityMatch, error), f graphql.CollectedField, args entityListArgs,
) (c *connection, err error) {
	c = &connection{}
	if err := p.planPaging(c, f, args.Page); err != nil {
		return nil, err
	}
	if c.entityList.Match, err = match(args.Where); err != nil {
		return nil, kg.AsError(p.run.TellPrefixed(p.ctx, err)).At("where")
	}
	if c.entityList.Order, err = c.entityList.Match.OrderBy(args.OrderBy); err != nil {
		return nil, kg.AsError(p.run.TellPrefixed(p.ctx, err)).At("orderBy")
	}
	if err = p.planConnection(c, f.Selections, entityConnections); err == nil {
		err = p.bindIfShown(c, f)
	}
	c.entityList.First, c.entityList.Total, c.entityList.Backward = c.first, c.total, c.backward
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
	uncounted  bool // counting was ended by a bound: total is null
	cut        *cut // nil without a budget
	// counted are the steps that counted and grouped all rows of a pattern, nil if they
	// are those of the page. They read countedReads statements.
	counted      []pattern.Step
	countedReads int64
	// node writes an element of another kind.
	node func(w *writer, selection, k int)
	// eventOnly reports whether only a field `events` lists the element. nil
	// means that no element is such.
	eventOnly func(k int) bool
	// extra writes a field that only this connection has.
	extra func(w *writer, i int)
	// end is the cursor after the page if that is not the last element's.
	end string
	// from and to are the revisions of a page of differences.
	from, to kg.Revision
}

func (g *page) write(w *writer) {
	if g.cut == nil || g.cut.opened {
		g.writeFields(w)
		return
	}
	from := len(w.B)
	g.cut.cutter.queuePage(g, w)
	g.writeFields(w)
	g.cut.base = len(w.B) - from
	g.cut.fixed = g.cut.base - g.infoBytes(0, g.more, g.truncated)
}

// Write writes the page.
func (g *page) Write(w *executor.Writer) error {
	g.write(w)
	return nil
}

func (g *page) writeFields(w *writer) {
	scalar.WriteFields(w, g.connection.fields, func(i int, f *connectionField) {
		w.EnterField(f.key)
		switch f.kind {
		case connectionTypename:
			w.B = scalar.AppendString(w.B, f.typename)
		case connectionEdges, connectionNodes:
			g.writeElements(w, i)
		case connectionPageInfo:
			w.B = g.appendInfo(w.B, f.info)
		case connectionTotal:
			if g.uncounted {
				w.B = append(w.B, "null"...)
			} else {
				w.B = scalar.AppendUint(w.B, g.total)
			}
		case connectionGroups:
			g.groups[f.selection].write(w)
		case connectionFailed:
			f.failed.write(w)
		case connectionExtra:
			g.extra(w, f.selection)
		case connectionRevision:
			revision := g.from
			if f.typename == "to" {
				revision = g.to
			}
			w.B = scalar.AppendUint(w.B, uint64(revision))
		}
		w.LeaveField()
	})
}

// writeElements writes one of the fields that list the elements.
func (g *page) writeElements(w *writer, field int) {
	if g.cut != nil {
		t := &g.cut.texts[field]
		w.B = append(append(append(w.B, '['), t.json...), ']')
		w.KeepErrors(t.errs)
		return
	}
	f := &g.connection.fields[field]
	if f.kind == connectionNodes {
		g.writeList(w, f, func(k int) { g.writeNode(w, f.selection, k) })
		return
	}
	g.writeList(w, f, func(k int) {
		f.writeEdge(w, func(b []byte) []byte { return scalar.AppendString(b, g.cursors[k]) }, func(selection int) { g.writeNode(w, selection, k) })
	})
}

// writeList stops when the answer has become too large, which boundedValue
// then reports: an element that is loaded once may be written many times, and
// the names of fields count as well.
func (g *page) writeList(w *writer, f *connectionField, element func(k int)) {
	w.B = append(w.B, '[')
	n := 0
	for k := range g.size {
		if len(w.B) > g.connection.limit {
			break
		}
		if !f.events && g.eventOnly != nil && g.eventOnly(k) {
			continue
		}
		if n > 0 {
			w.B = append(w.B, ',')
		}
		w.EnterElement(n)
		element(k)
		w.LeaveField()
		n++
	}
	w.B = append(w.B, ']')
}

func (g *page) writeNode(w *writer, selection, k int) {
	switch {
	case g.node != nil:
		g.node(w, selection, k)
	case g.entities != nil:
		g.entities[selection][k].write(w)
	default:
		g.statements[selection][k].write(w)
	}
}

func (of *connectionField) writeEdge(w *writer, cursor func([]byte) []byte, node func(selection int)) {
	scalar.WriteFields(w, of.edge, func(_ int, f *edgeField) {
		w.EnterField(f.key)
		switch f.name {
		case "cursor":
			w.B = cursor(w.B)
		case "node":
			node(f.selection)
		default:
			w.B = scalar.AppendString(w.B, of.typename)
		}
		w.LeaveField()
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

// goesOn reports whether the list has elements after the page, or before it. A
// page backward that a budget cut goes on after its last element.
func (g *page) goesOn(after bool) bool {
	if !g.connection.backward {
		if after {
			return g.more
		}
		return g.connection.after != nil
	}
	if after {
		return g.truncated || g.connection.after != nil
	}
	return g.more
}

func (g *page) appendInfo(b []byte, fields []scalarField) []byte {
	v := pageInfoLeaves{page: g}
	if g.connection.cursors {
		v.start, v.end = g.endCursors()
	}
	return appendObject(b, fields, "PageInfo", v.appendNamed)
}

// pageInfoLeaves appends the fields of PageInfo.
type pageInfoLeaves struct {
	page       *page
	start, end string
}

func (v pageInfoLeaves) appendHasNextPage(b []byte) []byte {
	return strconv.AppendBool(b, v.page.goesOn(true))
}

func (v pageInfoLeaves) appendHasPreviousPage(b []byte) []byte {
	return strconv.AppendBool(b, v.page.goesOn(false))
}

func (v pageInfoLeaves) appendTruncated(b []byte) []byte {
	return strconv.AppendBool(b, v.page.truncated)
}

func (v pageInfoLeaves) appendStartCursor(b []byte) []byte { return appendOptional(b, v.start) }
func (v pageInfoLeaves) appendEndCursor(b []byte) []byte   { return appendOptional(b, v.end) }
