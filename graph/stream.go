package graph

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/follow"
	"koine/internal/operation"
	"koine/kg"
)

// Stream is an established subscription: what is followed, with what the
// operation selected of it.
type Stream struct {
	source
	ctx     context.Context // that of the stream
	engine  *Engine
	request *operation.Request
	plan    *eventPlan
	view    kg.View
	hints   atomic.Pointer[[]operation.Hint] // until an event has told them
}

// source is where a stream's events come from: a follow.Following, or the messages
// of a channel.
type source interface {
	operation.Subscription
	// Snapshot is what stands, while its events are being yielded; nil otherwise.
	Snapshot() *kg.Snapshot
	// View takes a snapshot for what the events are told with.
	View(ctx context.Context, v kg.View) (*kg.Snapshot, error)
}

// register takes the stream's place in the log.
func (s *Stream) register(subject follow.Subject, start operation.Resume) error {
	if err := s.followable(); err != nil {
		return err
	}
	f, err := follow.Start(s.ctx, s.engine.deps.Store, subject, start)
	s.source = f
	return err
}

// followable refuses views under which nothing can be followed.
func (s *Stream) followable() error {
	if s.view.At != 0 || s.view.MaxAge != 0 {
		return kg.Errorf(kg.CodeInvalid, "changes cannot be watched under an age or at a revision").At("view")
	}
	return nil
}

// Events yields what stands, if that was asked for, and then the changes. It
// ends with an error: the context's, or a *kg.Error (CodeResync, CodeClosed,
// CodeLimitExceeded where more would have to be watched than may be, CodeInternal
// for a panic in what finds the changes, which is logged). A panic in the writing
// of an event is an internal error of that event.
func (s *Stream) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		ours := true // a panic of whoever takes the events is not
		defer func() {
			if ours {
				if p := recover(); p != nil {
					yield(operation.Event{}, s.broken(p))
				}
			}
		}()
		for e, err := range s.source.Events() {
			told := true
			if err == nil {
				e.Result, told, err = s.result(&e)
			}
			if told {
				e.Result.Hints = s.untold()
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

// broken logs a panic, and is the error that tells of it.
func (s *Stream) broken(value any) error {
	err := s.engine.recovered(s.ctx, value).(*panicError)
	s.engine.present(s.atField(err))
	err.logged = true
	return &kg.Error{Code: kg.CodeInternal, Message: "internal error", Err: err}
}

// atField says that the error is of the subscription's field.
func (s *Stream) atField(err error) error { return atPath(ast.Path{ast.PathName(s.plan.alias)}, err) }

// UpToDate is an event that tells the position scanned to.
func (s *Stream) UpToDate() operation.Event {
	e := operation.Event{UpToDate: true, Position: s.Position()}
	e.Result, _, _ = s.result(&e)
	e.Result.Hints = s.untold()
	return e
}

// untold gives the hints of the operation to the first who asks.
func (s *Stream) untold() []operation.Hint {
	if hints := s.hints.Swap(nil); hints != nil {
		return *hints
	}
	return nil
}

// Resync is the result that tells why the subscription cannot go on.
func (s *Stream) Resync(err *kg.Error) operation.Result {
	return operation.Result{Data: s.plan.wrap(s.plan.resync.writeResync(s.engine, err))}
}

// result writes what the operation selected of an event, and tells whether it is
// one. An error ends the subscription.
func (s *Stream) result(e *operation.Event) (result operation.Result, told bool, ends error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.engine.limits.Duration)
	defer cancel()
	t := &telling{stream: s, ctx: ctx, run: newRun(s.engine, s.request)}
	t.run.snapshot = s.View
	defer func() {
		if p := recover(); p != nil {
			told, ends = true, nil
			result.Data, result.Errors = nil, s.engine.present(s.atField(s.engine.recovered(s.ctx, p)))
		}
		t.run.close(&result)
		result.Position = e.Position
	}()
	b, err := t.write(e)
	if err == nil && len(b) > s.engine.limits.ResultBytes {
		err = s.engine.limits.resultTooLarge()
	}
	switch {
	case kg.CodeOf(err) == kg.CodeResync:
		return result, true, err
	case s.ctx.Err() != nil:
		return result, true, s.ctx.Err()
	case err != nil:
		result.Errors = s.engine.present(s.atField(err))
		return result, true, nil
	case b == nil:
		return result, false, nil
	}
	result.Data = s.plan.wrap(b)
	return result, true, nil
}

// telling is the writing of one event.
type telling struct {
	stream *Stream
	ctx    context.Context // of this event: it bounds the time
	run    *run
}

func (t *telling) write(e *operation.Event) ([]byte, error) {
	if e.UpToDate {
		return t.stream.plan.upToDate.writeUpToDate(t.stream.engine, e.Position), nil
	}
	if e.Replaced() != nil {
		return t.stream.plan.replaced.write(nil, t.stream.engine, &e.Changes[0]), nil
	}
	return t.stream.plan.content.write(t, e)
}

// loader reads what the event shows of entities beyond their names: as of the
// event's own revision. Where nothing reads, there is nothing to read from.
func (t *telling) loader(e *operation.Event, reads bool) (*loader, error) {
	switch {
	case !reads:
		return newLoader(t.ctx, t.run, nil, t.stream.view), nil
	case e.Snapshot:
		return newLoader(t.ctx, t.run, t.stream.Snapshot(), t.stream.view), nil
	}
	return t.loaderAt(e.Position.Revision)
}

// loaderAt reads as of a revision, which is not 0.
func (t *telling) loaderAt(r kg.Revision) (*loader, error) {
	view := t.stream.view
	view.At = r
	snapshot, err := t.run.open(t.ctx, view)
	if err != nil {
		return nil, err
	}
	return newLoader(t.ctx, t.run, snapshot, t.stream.view), nil
}
