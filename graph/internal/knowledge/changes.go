package knowledge

import (
	"context"
	"errors"
	"iter"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/query"
	"koine/internal/query/path"
	"koine/kg"
)

// changeList is the plan of a list of changes and the range of the log that it
// covers.
type changeList struct {
	*connection
	plans []*changePlan // per selection

	match        query.StatementMatch
	filter       kg.Filter // without patterns
	backward     bool
	after        *scalar.Position
	since, until *kg.Moment
	direction    path.Direction // for the history of an entity
}

var changeConnections = connectionTypes{
	name: "ChangeConnection", implementors: ChangeConnectionImplementors,
	edgeName: "ChangeEdge", edges: ChangeEdgeImplementors,
}

// changeListArgs are the arguments of a list of changes.
type changeListArgs struct {
	Where        *query.StatementFilter
	Ops          []kg.Op
	Order        query.SortDirection
	After        *scalar.Cursor
	Since, Until *kg.Moment
	First        *int
	Direction    path.Direction
}

// planChangeList plans a field with changes.
func (p *Planner) planChangeList(f graphql.CollectedField, args changeListArgs) (c *changeList, err error) {
	c = &changeList{
		connection: &connection{limit: p.run.Reader.Limits.ResultBytes},
		backward:   args.Order == query.Descending,
		after:      (*scalar.Position)(args.After),
		since:      args.Since, until: args.Until,
		direction: args.Direction,
	}
	if p.View.MaxAge != 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "changes cannot be listed in a view with maxAgeSeconds: use since or view.recordedAt").At("view.maxAgeSeconds")
	}
	if c.first, err = p.run.Reader.Limits.CheckFirst(args.First, limit.DefaultPageSize); err != nil {
		return nil, err
	}
	c.connection.after, c.list = args.After, f.Alias // for hasPreviousPage and hints
	if c.match, err = p.compiler().Changes(args.Where); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	c.filter = kg.Filter{Ops: args.Ops, View: p.View, Keep: c.match.WatchFilter()}
	c.filter.View.At = 0 // the log range ends at the view's revision instead
	c.element = func(set ast.SelectionSet) (int, error) {
		plan := &changePlan{}
		c.plans = append(c.plans, plan)
		return len(c.plans) - 1, p.planChange(plan, set)
	}
	c.events = func(set ast.SelectionSet) (int, error) {
		c.filter.Replacements = true
		i, err := c.element(set)
		if err == nil {
			c.plans[i].replaced, err = p.planReplaced(set)
		}
		return i, err
	}
	return c, p.planConnection(c.connection, f.Selections, changeConnections)
}

// Changes answers Query.changes.
func (*Query) Changes(ctx context.Context, f *executor.Selected, args *QueryChangesArgs) (executor.Value, error) {
	r, err := beginReading(ctx, f, args.View, args.Budget)
	if err != nil {
		return nil, err
	}
	c, err := r.planChangeList(r.field, changeListArgs{
		Where: args.Where, Ops: args.Ops, Order: args.Order, After: args.After, Since: args.Since, Until: args.Until, First: args.First,
	})
	if err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	g, err := l.changePage(c)
	if err != nil {
		return nil, err
	}
	return r.answer(g), nil
}

func (l *loader) changePage(c *changeList) (*page, error) {
	part, err := l.logRange(c)
	if err != nil {
		return nil, err
	}
	filter := c.filter
	filter.Patterns = []kg.Pattern{c.match.Pattern}
	log, err := l.reader.Store.ReadLog(l.ctx, filter, part)
	if err != nil {
		return nil, atAfter(err)
	}
	g := &page{connection: c.connection}
	if c.total {
		if err := l.countChanges(c, g); err != nil {
			return nil, err
		}
	}
	events, err := l.collectEvents(c, g, nil, log.Events())
	if err != nil {
		return nil, err
	}
	g.more = !log.Done()
	l.endPage(g, log.Reached())
	if l.run.cutter != nil {
		return g, l.closeChanges(c, g, events, part)
	}
	return g, l.shareChanges(c, events, []*page{g}, []int{0, len(events)})
}

// countChanges counts the changes of all pages: of Limits.Commits commits, or the
// total is null with a hint.
func (l *loader) countChanges(c *changeList, g *page) error {
	whole := *c
	whole.after = nil
	part, err := l.logRange(&whole)
	if err != nil {
		return err
	}
	filter := c.filter
	filter.Patterns, filter.Replacements = []kg.Pattern{c.match.Pattern}, false
	log, err := l.reader.Store.ReadLog(l.ctx, filter, part)
	if err != nil {
		return atAfter(err)
	}
	if err := countEvents(g, log.Events()); err != nil {
		return err
	}
	if !log.Done() {
		l.leaveUncounted(g)
	}
	return nil
}

// countEvents adds the events to the total of a page.
func countEvents(g *page, events iter.Seq2[kg.Event, error]) error {
	for _, err := range events {
		if err != nil {
			return atAfter(err)
		}
		g.total++
	}
	return nil
}

// leaveUncounted makes the total of a page null, with a hint.
func (l *loader) leaveUncounted(g *page) {
	g.uncounted = true
	l.run.NoteUncounted(g.connection.list)
}

// atAfter places a position error in the argument `after`.
func atAfter(err error) error {
	if known := (*kg.Error)(nil); errors.As(err, &known) && known.Code == kg.CodePositionGone {
		return known.At("after")
	}
	return err
}

// logRange is the range of the log that a list shows. It ends at the
// operation's revision.
func (l *loader) logRange(c *changeList) (part kg.LogRange, err error) {
	store := l.reader.Store
	part = kg.LogRange{After: store.Oldest(), Until: l.snapshot.Position(), Backward: c.backward, Commits: l.reader.Limits.Commits}
	behind := func(m *kg.Moment, argument string, to *kg.Position) error {
		if m == nil {
			return nil
		}
		r, err := l.resolveArgument(*m, argument)
		*to = kg.Position{Epoch: part.Until.Epoch, Revision: r, Index: kg.EndOfCommit}
		if oldest := store.Oldest(); err == nil && to.Compare(oldest) < 0 {
			gone := kg.Errorf(kg.CodePositionGone, "the log goes back to revision %d, not to %d", oldest.Revision, r).At(argument)
			gone.Oldest = &oldest
			err = gone
		}
		return err
	}
	if err := behind(c.since, "since", &part.After); err != nil {
		return part, err
	}
	if err := behind(c.until, "until", &part.Until); err != nil {
		return part, err
	}
	if c.after == nil {
		return part, nil
	}
	from, err := l.parsePosition(*c.after)
	switch {
	case err != nil:
		return part, err
	case !c.backward && (c.since == nil || from.Compare(part.After) > 0):
		part.After = from // also one before the log, so that ReadLog reports it
	case c.backward && from.Compare(part.Until) < 0:
		part.Until = from
	}
	return part, nil
}

// parsePosition parses a position token or one of the words "earliest" and
// "latest".
func (l *loader) parsePosition(p scalar.Position) (kg.Position, error) {
	store := l.reader.Store
	switch p {
	case "earliest":
		return store.Oldest(), nil
	case "latest":
		return l.snapshot.Position(), nil
	}
	at, err := store.ParsePosition(string(p))
	if err != nil {
		return at, kg.AsError(err).At("after")
	}
	return at, nil
}

// collectEvents appends events to a page until it is full, and notes whether another
// one follows.
func (l *loader) collectEvents(c *changeList, g *page, taken []operation.Event, events iter.Seq2[kg.Event, error]) ([]operation.Event, error) {
	for e, err := range events {
		if err != nil {
			return nil, atAfter(err)
		}
		if g.size == c.first {
			g.more = true
			break
		}
		if err := l.run.ChargeBytes(eventSize(&e)); err != nil {
			return nil, err
		}
		l.run.noteSources(e.Statement.Assertions)
		g.size++
		taken = append(taken, operation.Event{Changes: []kg.Event{e}, Position: e.Position})
		if c.cursors {
			at := e.Position
			if c.backward {
				at = e.Start()
			}
			g.cursors = append(g.cursors, l.reader.Store.FormatPosition(at))
		}
	}
	return taken, nil
}

// eventSize is the approximate size of an event in an answer, in bytes.
func eventSize(e *kg.Event) int {
	n := len(e.Commit.Justification)
	size := func(s *kg.Statement) {
		n += len(s.Subject.Value()) + len(s.Predicate.Value()) + len(s.Object.Value()) + len(s.Graph.Value())
		for _, a := range s.Assertions {
			n += len(a.Source) + a.ContentBytes()
		}
	}
	size(&e.Statement)
	for i := range e.Previous {
		size(&e.Previous[i])
	}
	return n
}

func (l *loader) endPage(g *page, reached kg.Position) {
	if g.connection.cursors {
		g.end = l.reader.Store.FormatPosition(reached)
	}
}

// shareChanges loads the changes of several pages together.
func (l *loader) shareChanges(c *changeList, events []operation.Event, pages []*page, starts []int) error {
	loaded := make([][]changeNode, len(c.plans))
	for i, plan := range c.plans {
		nodes, err := l.loadChanges(plan, events)
		if err != nil {
			return err
		}
		loaded[i] = nodes
	}
	for i, g := range pages {
		g.node = func(w *writer, selection, k int) {
			loaded[selection][starts[i]+k].write(w, l.reader.Store)
		}
		g.eventOnly = func(k int) bool { return events[starts[i]+k].Replaced() != nil }
	}
	return nil
}
