package knowledge

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/scalar"
	"koine/graph/internal/views"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

// Subscription has the functions of the fields of Subscription that follow
// statements.
type Subscription struct{}

// Stream is an established subscription: its source and the plan of its
// events.
type Stream struct {
	Source
	ctx     context.Context // the stream's context
	reader  *Reader
	request *operation.Request
	plan    *eventPlan
	view    kg.View
	hints   atomic.Pointer[[]operation.Hint] // until an event has sent them
}

// Source is the source of a stream's events: a changefeed.Following, or a stream
// of a domain package.
type Source interface {
	operation.Subscription
	// Snapshot returns the snapshot while its events are being yielded, nil
	// otherwise.
	Snapshot() *kg.Snapshot
	// View takes a snapshot in which the events are read.
	View(ctx context.Context, v kg.View) (*kg.Snapshot, error)
}

// startFollowing starts following at the given start.
func (s *Stream) startFollowing(subject changefeed.Subject, start operation.Resume) error {
	if err := s.checkView(); err != nil {
		return err
	}
	f, err := changefeed.Start(s.ctx, s.reader.Store, subject, start)
	s.Source = f
	return err
}

// OpenStream establishes the subscription of a field to events that are no changes
// of statements. open makes their content and their source; it must be the last step
// that can fail.
func (r *Run) OpenStream(
	ctx context.Context, f *executor.Selected, resume *scalar.Position, open func(life context.Context, start operation.Resume) (EventContent, Source, error),
) (*Stream, error) {
	v, err := r.FieldView(nil)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: r.Life, reader: r.Reader, request: r.request, view: v}
	if err := s.checkView(); err != nil {
		return nil, err
	}
	start, err := r.startPosition(resume)
	if err != nil {
		return nil, err
	}
	if s.plan, err = newPlanner(ctx, f, v).planEvent(f.CollectedField, nil); err != nil {
		return nil, err
	}
	if s.plan.content, s.Source, err = open(r.Life, start); err != nil {
		return nil, err
	}
	return s, nil
}

// SetHints sets the hints of the operation, which the next event sends.
func (s *Stream) SetHints(hints []operation.Hint) { s.hints.Store(&hints) }

// checkView refuses views in which changes cannot be followed.
func (s *Stream) checkView() error {
	if s.view.At != 0 || s.view.MaxAge != 0 {
		return kg.Errorf(kg.CodeInvalid, "changes cannot be followed in a view with at or maxAgeSeconds").At("view")
	}
	return nil
}

// Events yields the snapshot, if it was requested, and then the changes. It
// ends with an error: the context's, or a *kg.Error (CodeResync, CodeClosed,
// CodeLimitExceeded if more would have to be watched than allowed,
// CodeInternal for a panic in finding the changes, which is logged). A panic
// in writing an event is an internal error of that event.
func (s *Stream) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		ours := true // false while the consumer runs: its panics are not ours
		defer func() {
			if ours {
				if p := recover(); p != nil {
					yield(operation.Event{}, s.reportPanic(p))
				}
			}
		}()
		e := new(operation.Event) // one for all, because it is passed on by its address
		for next, err := range s.Source.Events() {
			told := true
			*e = next
			if err == nil {
				e.Result, told, err = s.eventResult(e)
			}
			if told {
				e.Result.Hints = s.takeHints()
				ours = false
				more := yield(*e, err)
				ours = true
				if !more {
					return
				}
			}
			if err != nil {
				return
			}
			*e = operation.Event{} // a stream at rest holds nothing
		}
	}
}

// reportPanic logs a panic and returns an internal error.
func (s *Stream) reportPanic(value any) error {
	err := fault.Recover(s.ctx, value).(*fault.Panic)
	s.reader.Faults.PresentAlone(s.atField(err))
	err.Logged = true
	return &kg.Error{Code: kg.CodeInternal, Message: "internal error", Err: err}
}

// atField places an error at the subscription's field.
func (s *Stream) atField(err error) error {
	return fault.AtPath(ast.Path{ast.PathName(s.plan.alias)}, err)
}

// UpToDate returns an event with the position scanned to.
func (s *Stream) UpToDate() operation.Event {
	e := operation.Event{UpToDate: true, Position: s.Position()}
	e.Result, _, _ = s.eventResult(&e)
	e.Result.Hints = s.takeHints()
	return e
}

// Field returns the name of the subscription's root field.
func (s *Stream) Field() string { return s.plan.field }

// takeHints returns the hints of the operation, once.
func (s *Stream) takeHints() []operation.Hint {
	if hints := s.hints.Swap(nil); hints != nil {
		return *hints
	}
	return nil
}

// Resync returns the result that says why the subscription cannot go on.
func (s *Stream) Resync(err *kg.Error) operation.Result {
	return operation.Result{Data: s.plan.wrapData(s.plan.resync.appendResync(nil, s.reader.Store, err))}
}

// eventResult writes the selected fields of an event. told is false if the event is
// skipped. An error in ends ends the subscription.
func (s *Stream) eventResult(e *operation.Event) (result operation.Result, told bool, ends error) {
	if data := s.findShared(e); data != nil {
		return operation.Result{Data: data, Shared: true, Position: e.Position}, true, nil
	}
	if result, told, ends = s.writeEvent(e); told && ends == nil && len(result.Errors) == 0 {
		result.Shared = s.keepShared(e, &result)
	}
	return result, told, ends
}

// findShared returns the result that another stream wrote of the same event, nil if none is kept.
func (s *Stream) findShared(e *operation.Event) json.RawMessage {
	if content, ok := s.plan.content.(SharedContent); ok && !e.UpToDate {
		return content.FindResult(e)
	}
	return s.plan.results.find(e)
}

// keepShared keeps a result for other streams, and reports whether it did.
func (s *Stream) keepShared(e *operation.Event, result *operation.Result) bool {
	content, ok := s.plan.content.(SharedContent)
	if !ok {
		return s.plan.results.keep(e, result)
	}
	if e.UpToDate || len(result.Data) > maxSharedResult {
		return false
	}
	result.Data = slices.Clip(result.Data)
	return content.KeepResult(e, result.Data)
}

// writeEvent writes the result of an event, as eventResult.
func (s *Stream) writeEvent(e *operation.Event) (result operation.Result, told bool, ends error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.reader.Limits.Duration)
	defer cancel()
	t := &EventWriter{stream: s, Run: s.reader.NewRun(s.request)}
	t.Ctx = t.Run.with(ctx)
	t.Run.snapshot = s.View
	defer func() {
		if p := recover(); p != nil {
			told, ends = true, nil
			result.Data, result.Errors = nil, s.reader.Faults.PresentAlone(s.atField(fault.Recover(s.ctx, p)))
		}
		t.Run.Close(&result)
		result.Position = e.Position
	}()
	w := t.Run.NewWriter(t.Ctx)
	w.B = append(w.B, '{')
	w.EnterField(s.plan.key)
	begin := len(w.B)
	err := t.write(w, e)
	if err == nil {
		err = w.Err()
	}
	if err == nil && len(w.B)-begin > s.reader.Limits.ResultBytes {
		err = s.reader.Limits.ResultTooLarge()
	}
	switch {
	case kg.CodeOf(err) == kg.CodeResync:
		return result, true, err
	case s.ctx.Err() != nil:
		return result, true, s.ctx.Err()
	case err != nil:
		result.Errors = s.reader.Faults.PresentAlone(s.atField(err))
		return result, true, nil
	case len(w.B) == begin:
		return result, false, nil
	}
	result.Data, result.Errors = append(w.B, '}'), w.Errors
	return result, true, nil
}

// EventWriter writes one event.
type EventWriter struct {
	stream *Stream
	Ctx    context.Context // bounds the time for this event
	Run    *Run
}

func (t *EventWriter) write(w *writer, e *operation.Event) error {
	plan := t.stream.plan
	switch {
	case e.UpToDate:
		w.B = plan.upToDate.appendUpToDate(w.B, t.stream.reader.Store, e.Position)
	case e.Replaced() != nil:
		if err := plan.replaced.readAgents(w.Ctx, t.Run, &e.Changes[0]); err != nil {
			return err
		}
		plan.replaced.write(w, t.stream.reader.Store, &e.Changes[0])
	default:
		return plan.content.Write(w, t, e)
	}
	return nil
}

// Snapshot returns the snapshot whose events are being written, nil for none.
func (t *EventWriter) Snapshot() *kg.Snapshot { return t.stream.Snapshot() }

// FormatPosition returns the token of a place in the log.
func (t *EventWriter) FormatPosition(p kg.Position) scalar.Position {
	return scalar.Position(t.stream.reader.Store.FormatPosition(p))
}

// loaderFor returns a loader at the event's revision. Without reads it has no
// snapshot.
func (t *EventWriter) loaderFor(e *operation.Event, reads bool) (*loader, error) {
	switch {
	case !reads:
		return newLoader(t.Ctx, t.Run, nil, t.stream.view), nil
	case e.Snapshot:
		return newLoader(t.Ctx, t.Run, t.stream.Snapshot(), t.stream.view), nil
	}
	return t.loaderAt(e.Position.Revision)
}

// loaderAt returns a loader at a revision.
func (t *EventWriter) loaderAt(r kg.Revision) (*loader, error) {
	view := t.stream.view
	view.At, view.AtStart = r, r == 0
	snapshot, err := t.Run.OpenSnapshot(t.Ctx, view)
	if err != nil {
		return nil, err
	}
	return newLoader(t.Ctx, t.Run, snapshot, t.stream.view), nil
}

// SubscribeTo establishes the subscription of a field. of makes its content and
// its subject.
func SubscribeTo(ctx context.Context, f *executor.Selected, resume *scalar.Position, view *views.ViewInput, of func(*Planner, ast.SelectionSet) (EventContent, changefeed.Subject, error)) (*Stream, error) {
	r := RunOf(ctx)
	v, err := r.FieldView(view)
	if err != nil {
		return nil, err
	}
	p := newPlanner(ctx, f, v)
	content, subject, err := of(p, f.Selections)
	if err != nil {
		return nil, err
	}
	plan, err := p.planEvent(f.CollectedField, content)
	if err != nil {
		return nil, err
	}
	start, err := r.startPosition(resume)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: r.Life, reader: r.Reader, request: r.request, plan: r.Reader.plans.share(plan, r.request), view: v}
	return s, s.startFollowing(subject, start)
}

// startPosition returns the start of the subscription. The request's own start takes
// precedence over the argument: a client that reconnects sends the same
// operation.
func (r *Run) startPosition(argument *scalar.Position) (operation.Resume, error) {
	if r.request.Resume.Start != operation.DefaultStart || argument == nil {
		return r.request.Resume, nil
	}
	switch *argument {
	case "latest":
		return operation.Resume{Start: operation.Latest}, nil
	case "earliest":
		return operation.Resume{Start: operation.Earliest}, nil
	case "snapshot":
		return operation.Resume{Start: operation.Snapshot}, nil
	}
	after, err := r.Reader.Store.ParsePosition(string(*argument))
	if err != nil {
		return operation.Resume{}, kg.AsError(err).At("resume")
	}
	return operation.Resume{Start: operation.After, After: after}, nil
}
