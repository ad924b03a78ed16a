package graph

import (
	"context"
	"iter"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/follow"
	"koine/internal/operation"
	"koine/kg"
)

// Stream is an established subscription to the changes of statements. It is
// what is followed, with what the operation selected of it.
type Stream struct {
	*follow.Following
	ctx     context.Context // that of the stream
	engine  *Engine
	request *operation.Request
	plan    *eventPlan
	filter  kg.Filter
}

// register takes the stream's place in the log.
func (s *Stream) register(start operation.Resume) (err error) {
	if s.filter.View.At != 0 || s.filter.View.MaxAge != 0 {
		return kg.Errorf(kg.CodeInvalid, "changes cannot be watched under an age or at a revision").At("view")
	}
	s.Following, err = follow.Start(s.ctx, s.engine.deps.Store, s.filter, start)
	return err
}

// Events yields what stands, if that was asked for, and then the changes. It
// ends with an error: the context's, or a *kg.Error (CodeResync, CodeClosed).
func (s *Stream) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for e, err := range s.Following.Events() {
			if !s.pass(&e, err, yield) {
				return
			}
		}
	}
}

func (s *Stream) pass(e *operation.Event, err error, yield func(operation.Event, error) bool) bool {
	if err == nil {
		e.Result = s.result(e)
	}
	return yield(*e, err)
}

// UpToDate is an event that tells the position scanned to.
func (s *Stream) UpToDate() operation.Event {
	e := operation.Event{UpToDate: true, Position: s.Position()}
	e.Result = s.result(&e)
	return e
}

// Resync is the result that tells why the subscription cannot go on.
func (s *Stream) Resync(err *kg.Error) operation.Result {
	return operation.Result{Data: s.plan.wrap(s.plan.resync.writeResync(s.engine, err))}
}

// result writes what the operation selected of an event.
func (s *Stream) result(e *operation.Event) (result operation.Result) {
	r := newRun(s.engine, s.request)
	defer func() {
		if p := recover(); p != nil {
			result.Data, result.Errors = nil, s.engine.present(s.engine.recovered(s.ctx, p))
		}
		at := result.Position
		r.close(&result)
		result.Position = at
	}()
	result.Position = e.Position
	b, err := s.write(r, e)
	if err == nil && len(b) > s.engine.limits.ResultBytes {
		err = s.engine.limits.resultTooLarge()
	}
	if err != nil {
		result.Errors = s.engine.present(atPath(ast.Path{ast.PathName(s.plan.alias)}, err))
		return result
	}
	result.Data = s.plan.wrap(b)
	return result
}

func (s *Stream) write(r *run, e *operation.Event) ([]byte, error) {
	if e.UpToDate {
		return s.plan.upToDate.writeUpToDate(s.engine, e.Position), nil
	}
	l, err := s.loader(r, e)
	if err != nil {
		return nil, err
	}
	return s.plan.change.write(l, e)
}

// loader reads what the event shows of entities beyond their names: as of the
// event's own revision. Without such fields it reads nothing.
func (s *Stream) loader(r *run, e *operation.Event) (*loader, error) {
	switch {
	case !s.plan.change.reads:
		return newLoader(s.ctx, r, nil), nil
	case e.Snapshot:
		return newLoader(s.ctx, r, s.Snapshot()), nil
	}
	view := s.filter.View
	view.At = e.Change.Commit.Revision
	snapshot, err := r.open(s.ctx, view)
	if err != nil {
		return nil, err
	}
	return newLoader(s.ctx, r, snapshot), nil
}
