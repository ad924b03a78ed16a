package graph

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/fault"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

// Stream is an established subscription: its source and the plan of its
// events.
type Stream struct {
	source
	ctx     context.Context // the stream's context
	engine  *Engine
	request *operation.Request
	plan    *eventPlan
	view    kg.View
	hints   atomic.Pointer[[]operation.Hint] // until an event has sent them
}

// source is the source of a stream's events: a changefeed.Following, or a stream
// of a domain package.
type source interface {
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
	f, err := changefeed.Start(s.ctx, s.engine.deps.Store, subject, start)
	s.source = f
	return err
}

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
		for e, err := range s.source.Events() {
			told := true
			if err == nil {
				e.Result, told, err = s.eventResult(&e)
			}
			if told {
				e.Result.Hints = s.takeHints()
				ours = false
				more := yield(e, err)
				ours = true
				if !more {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// reportPanic logs a panic and returns an internal error.
func (s *Stream) reportPanic(value any) error {
	err := fault.Recover(s.ctx, value).(*fault.Panic)
	s.engine.faults.PresentAlone(s.atField(err))
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
	return operation.Result{Data: s.plan.wrapData(s.plan.resync.appendResync(nil, s.engine, err))}
}

// eventResult writes the selected fields of an event. told is false if the event is
// skipped. An error in ends ends the subscription.
func (s *Stream) eventResult(e *operation.Event) (result operation.Result, told bool, ends error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.engine.limits.Duration)
	defer cancel()
	t := &eventWriter{stream: s, ctx: ctx, run: newRun(s.engine, s.request)}
	t.run.snapshot = s.View
	defer func() {
		if p := recover(); p != nil {
			told, ends = true, nil
			result.Data, result.Errors = nil, s.engine.faults.PresentAlone(s.atField(fault.Recover(s.ctx, p)))
		}
		t.run.close(&result)
		result.Position = e.Position
	}()
	w := t.run.newWriter(context.WithValue(ctx, runKey{}, t.run))
	w.B = append(w.B, '{')
	w.EnterField(s.plan.key)
	begin := len(w.B)
	err := t.write(w, e)
	if err == nil {
		err = w.Err()
	}
	if err == nil && len(w.B)-begin > s.engine.limits.ResultBytes {
		err = s.engine.limits.ResultTooLarge()
	}
	switch {
	case kg.CodeOf(err) == kg.CodeResync:
		return result, true, err
	case s.ctx.Err() != nil:
		return result, true, s.ctx.Err()
	case err != nil:
		result.Errors = s.engine.faults.PresentAlone(s.atField(err))
		return result, true, nil
	case len(w.B) == begin:
		return result, false, nil
	}
	result.Data, result.Errors = append(w.B, '}'), w.Errors
	return result, true, nil
}

// eventWriter writes one event.
type eventWriter struct {
	stream *Stream
	ctx    context.Context // bounds the time for this event
	run    *run
}

func (t *eventWriter) write(w *writer, e *operation.Event) error {
	plan := t.stream.plan
	switch {
	case e.UpToDate:
		w.B = plan.upToDate.appendUpToDate(w.B, t.stream.engine, e.Position)
	case e.Replaced() != nil:
		if err := plan.replaced.readAgents(w.Ctx, t.run, &e.Changes[0]); err != nil {
			return err
		}
		plan.replaced.write(w, t.stream.engine, &e.Changes[0])
	default:
		return plan.content.write(w, t, e)
	}
	return nil
}

// loaderFor returns a loader at the event's revision. Without reads it has no
// snapshot.
func (t *eventWriter) loaderFor(e *operation.Event, reads bool) (*loader, error) {
	switch {
	case !reads:
		return newLoader(t.ctx, t.run, nil, t.stream.view), nil
	case e.Snapshot:
		return newLoader(t.ctx, t.run, t.stream.Snapshot(), t.stream.view), nil
	}
	return t.loaderAt(e.Position.Revision)
}

// loaderAt returns a loader at a revision other than 0.
func (t *eventWriter) loaderAt(r kg.Revision) (*loader, error) {
	view := t.stream.view
	view.At = r
	snapshot, err := t.run.openSnapshot(t.ctx, view)
	if err != nil {
		return nil, err
	}
	return newLoader(t.ctx, t.run, snapshot, t.stream.view), nil
}
