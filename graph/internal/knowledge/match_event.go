package knowledge

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/internal/query"
	"koine/internal/query/livematch"
	"koine/kg"
)

// matchEvent is the content and the subject of Subscription.matchChanged: it
// follows the commits that change a statement on which the pattern depends.
type matchEvent struct {
	match   *livematch.Match
	list    *matchList
	view    kg.View
	maxRows int // maximal number of rows in an event of the snapshot

	fields []matchEventField
	// snapshotRows are the rows of the snapshot's part being sent.
	snapshotRows []livematch.Row
}

type matchEventField struct {
	key    []byte
	name   string
	rows   *matchList // for added and removed: the list with one plan
	change *changePlan
	commit []RecordField
}

// MatchChanged establishes Subscription.matchChanged.
func (*Subscription) MatchChanged(ctx context.Context, f *executor.Selected, args *SubscriptionMatchChangedArgs) (*Stream, error) {
	return SubscribeTo(ctx, f, args.Resume, args.View, func(p *Planner, set ast.SelectionSet) (EventContent, changefeed.Subject, error) {
		c, err := p.planMatchEvent(&args.Pattern, args.Select)
		if err != nil {
			return nil, nil, err
		}
		return c, c, c.planFields(p, set)
	})
}

// planMatchEvent compiles the pattern. Texts are not looked up, because literals
// written later must match too.
func (p *Planner) planMatchEvent(input *query.PatternInput, selected []string) (*matchEvent, error) {
	limits := p.run.Reader.Limits
	c := &matchEvent{view: p.View, maxRows: limits.SnapshotRows}
	c.list = &matchList{connection: &connection{}, input: input, compiler: p.compiler()}
	c.list.compiler.Ctx = context.WithoutCancel(p.ctx)
	c.list.compiler.Texts = nil // of the index as it is now
	compiled, err := c.list.compile(nil)
	if err = p.run.TellPrefixed(p.ctx, err); err != nil {
		return nil, err
	}
	c.list.pattern = compiled
	c.list.names = query.Variables(compiled)
	if err := c.list.checkVariables(selected, nil); err != nil {
		return nil, err
	}
	group, err := c.list.compiler.Pattern(input, nil)
	if err != nil {
		return nil, err
	}
	if c.match, err = livematch.New(group, c.list.columns, limits.Live); err != nil {
		return nil, kg.AsError(err).At("pattern")
	}
	return c, nil
}

func (c *matchEvent) planFields(p *Planner, set ast.SelectionSet) error {
	return p.EachField(set, MatchChangeImplementors, func(f graphql.CollectedField, key []byte) error {
		c.fields = append(c.fields, matchEventField{key: key, name: f.Name})
		return matchChangeFieldPlan{p, c, &c.fields[len(c.fields)-1]}.planNamed(f)
	})
}

// matchChangeFieldPlan plans a field of a MatchChange.
type matchChangeFieldPlan struct {
	planner *Planner
	event   *matchEvent
	field   *matchEventField
}

func (b matchChangeFieldPlan) planAdded(f graphql.CollectedField) error   { return b.planRows(f) }
func (b matchChangeFieldPlan) planRemoved(f graphql.CollectedField) error { return b.planRows(f) }

func (b matchChangeFieldPlan) planRows(f graphql.CollectedField) error {
	list := *b.event.list
	plan, err := b.planner.planRow(&list, f.Selections)
	list.rows = []*rowPlan{plan}
	b.field.rows = &list
	return err
}

func (b matchChangeFieldPlan) planChanges(f graphql.CollectedField) error {
	b.field.change = &changePlan{}
	return b.planner.planChange(b.field.change, f.Selections)
}

func (b matchChangeFieldPlan) planCommit(f graphql.CollectedField) (err error) {
	b.field.commit, err = b.planner.PlanCommit(f.Selections)
	return err
}

// View is the view of the rows.
func (c *matchEvent) View() kg.View { return c.view }

// Begin returns the filter.
func (c *matchEvent) Begin(context.Context, *kg.Store, kg.Position) (kg.Filter, error) {
	return kg.Filter{Patterns: c.match.Patterns(), View: c.view, Replacements: true}, nil
}

// Changes yields the commits. Some of them change no row.
func (c *matchEvent) Changes(_ context.Context, _ *kg.Store, w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return changefeed.Commits(w)
}

// Current yields an event for each part of the rows.
func (c *matchEvent) Current(ctx context.Context, s *kg.Snapshot) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		var example *kg.Statement
		var failed error
		err := changefeed.MarkLast(c.snapshotParts(ctx, s), func(part []livematch.Row, last bool) bool {
			if c.snapshotRows == nil {
				// Protocols with events about statements represent the rows by
				// a statement that the pattern matches, or by any statement.
				if example, failed = changefeed.FirstStatement(s, append(slices.Clone(c.match.Patterns()), kg.Pattern{})...); failed != nil {
					return false
				}
			}
			c.snapshotRows = part
			return yield(operation.Event{Snapshot: true, SnapshotEnd: last, Statement: example}, nil)
		})
		if err = cmp.Or(err, failed); err != nil {
			yield(operation.Event{}, err)
		}
	}
}

func (c *matchEvent) snapshotParts(ctx context.Context, s *kg.Snapshot) iter.Seq2[[]livematch.Row, error] {
	return func(yield func([]livematch.Row, error) bool) {
		var part []livematch.Row
		for row, err := range c.match.Rows(ctx, s) {
			if err != nil {
				yield(nil, err)
				return
			}
			if part = append(part, row); len(part) == c.maxRows {
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// Write writes the rows that were added and removed, nothing for none. A client
// that keeps the set of rows must not miss any, so a row that cannot be sent
// ends the stream with CodeResync.
func (c *matchEvent) Write(w *writer, t *EventWriter, e *operation.Event) error {
	if e.Snapshot {
		l := newLoader(t.Ctx, t.Run, t.stream.Snapshot(), t.stream.view)
		return c.writeEvent(w, l, nil, livematch.Difference{Added: c.snapshotRows}, e)
	}
	err := c.writeChanged(w, t, e)
	if err == nil && len(w.B) > t.Run.Reader.Limits.ResultBytes {
		err = t.Run.Reader.Limits.ResultTooLarge()
	}
	var limit *limit.Error
	switch {
	case err == nil, t.stream.ctx.Err() != nil, kg.CodeOf(err) == kg.CodeResync:
		return err
	case errors.As(err, &limit):
		return ResyncError(e, limit.Message)
	case errors.Is(err, context.DeadlineExceeded):
		return ResyncError(e, "it takes too long")
	case kg.CodeOf(err) == kg.CodeRevisionGone:
		return ResyncError(e, "its history is gone")
	}
	t.Run.Reader.Faults.PresentAlone(t.stream.atField(err)) // it logs
	return ResyncError(e, "an internal error")
}

// ResyncError is the error of an event that cannot be written; clients must not miss any.
func ResyncError(e *operation.Event, why string) error {
	err := kg.Errorf(kg.CodeResync, "the changes of revision %d cannot be reported: %s", e.Position.Revision, why)
	err.Hint = "Start from a snapshot."
	return err
}

func (c *matchEvent) writeChanged(w *writer, t *EventWriter, e *operation.Event) error {
	after, err := t.loaderAt(e.Position.Revision)
	if err != nil {
		return err
	}
	before, err := t.loaderAt(e.Position.Revision - 1)
	if err != nil {
		return err
	}
	// Entities are shown as of then: they may have changed since.
	before.view.At, before.view.AtStart = e.Position.Revision-1, e.Position.Revision == 1
	rows, err := c.match.Difference(t.Ctx, before.snapshot, after.snapshot, commitOf(e))
	if err != nil || rows.Empty() {
		return err
	}
	return c.writeEvent(w, after, before, rows, e)
}

// writeEvent writes an event. before loads the removed rows as of the revision
// before.
func (c *matchEvent) writeEvent(w *writer, l, before *loader, rows livematch.Difference, e *operation.Event) (err error) {
	scalar.WriteFields(w, c.fields, func(_ int, f *matchEventField) {
		w.EnterField(f.key)
		switch {
		case err != nil:
		case f.name == "__typename":
			w.B = append(w.B, `"MatchChange"`...)
		case f.name == "added":
			err = l.writeRows(w, f.rows, rows.Added)
		case f.name == "removed":
			err = before.writeRows(w, f.rows, rows.Removed)
		case f.name == "changes":
			err = l.writeChanges(w, f.change, e)
		case f.name == "commit":
			err = l.run.WriteCommitOf(w, e, f.commit)
		default:
			w.B = matchChangeLeaves{eventLeaves{l.reader.Store, e}, c}.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
	return err
}

// matchChangeLeaves appends the scalars of a MatchChange.
type matchChangeLeaves struct {
	eventLeaves
	content *matchEvent
}

func (v matchChangeLeaves) appendColumns(b []byte) []byte {
	return appendStrings(b, v.content.list.columns)
}

// writeRows writes rows as a list. l may be nil if there are none.
func (l *loader) writeRows(w *writer, list *matchList, rows []livematch.Row) error {
	found := make([]solution, len(rows))
	for k, row := range rows {
		found[k] = make(solution, len(list.pattern.Names()))
		for i, name := range list.columns {
			found[k][list.pattern.Column(name)] = row[i]
		}
	}
	g := &page{}
	if len(rows) > 0 {
		if err := l.loadSolutions(list, g, found); err != nil {
			return err
		}
	}
	var err error
	scalar.WriteList(w, len(rows), func(k int) {
		from := len(w.B)
		g.node(w, 0, k)
		if err == nil {
			err = l.run.ChargeBytes(len(w.B) - from)
		}
	})
	return err
}
