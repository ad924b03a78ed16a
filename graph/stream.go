package graph

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/kg"
)

// Stream is an established subscription to the changes of statements.
type Stream struct {
	ctx     context.Context // that of the stream
	engine  *Engine
	request *operation.Request
	plan    *eventPlan
	filter  kg.Filter

	watcher  *kg.Watcher
	snapshot *kg.Snapshot // what stands first; nil without
	standing atomic.Bool  // the snapshot is not all handed out yet
}

// register takes the snapshot, if there is to be one, and then the place in the
// log behind it.
func (s *Stream) register(start operation.Resume) error {
	store := s.engine.deps.Store
	from := start.After
	switch start.Start {
	case operation.Unsaid, operation.Latest:
		from = store.Head()
	case operation.Earliest:
		from = store.Oldest()
	case operation.Snapshot:
		if s.filter.View.At != 0 || s.filter.View.MaxAge != 0 {
			return errNotWatchable()
		}
		snapshot, err := store.View(s.ctx, s.filter.View)
		if err != nil {
			return err
		}
		s.snapshot, from = snapshot, snapshot.Position()
		s.standing.Store(true)
	}
	watcher, err := store.Watch(s.ctx, s.filter, from)
	if err != nil {
		s.closeSnapshot()
		return err
	}
	s.watcher = watcher
	return nil
}

func errNotWatchable() error {
	return kg.Errorf(kg.CodeInvalid, "changes cannot be watched under an age or at a revision").At("view")
}

// Position is the one scanned to, and inside a snapshot, which cannot be
// resumed, the zero Position. Any goroutine may ask.
func (s *Stream) Position() kg.Position {
	if s.standing.Load() {
		return kg.Position{}
	}
	return s.watcher.Position()
}

// Close gives the place back. Events must have ended.
func (s *Stream) Close() {
	s.watcher.Close()
	s.closeSnapshot()
}

func (s *Stream) closeSnapshot() {
	if s.snapshot != nil {
		s.snapshot.Close()
		s.snapshot = nil
	}
}

// Events yields what stands, if that was asked for, and then the changes. It
// ends with an error: the context's, or a *kg.Error (CodeResync, CodeClosed).
func (s *Stream) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if s.snapshot != nil && !s.snapshotEvents(yield) {
			return
		}
		for change, err := range s.watcher.Events() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			e := operation.Event{Change: &change, Position: change.Position}
			e.Result = s.result(&e)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// snapshotEvents yields the statements of the snapshot, the last of them
// marked, and tells whether to go on.
func (s *Stream) snapshotEvents(yield func(operation.Event, error) bool) bool {
	defer s.closeSnapshot()
	var held *operation.Event // not yielded yet: it may be the last
	emit := func(e *operation.Event) bool {
		e.Result = s.result(e)
		return yield(*e, nil)
	}
	for statement, err := range s.stands() {
		if err != nil {
			yield(operation.Event{}, err)
			return false
		}
		if held != nil && !emit(held) {
			return false
		}
		held = &operation.Event{Snapshot: true, Change: &kg.Event{Op: kg.Add, Statement: statement, Position: s.snapshot.Position()}}
	}
	if held == nil {
		held = &operation.Event{UpToDate: true}
	}
	held.SnapshotEnd = held.Snapshot
	held.Position = s.snapshot.Position()
	defer s.standing.Store(false)
	return emit(held)
}

func (s *Stream) stands() iter.Seq2[kg.Statement, error] {
	return func(yield func(kg.Statement, error) bool) {
		if s.filter.Ops != nil && !slices.Contains(s.filter.Ops, kg.Add) {
			return
		}
		for statement, err := range s.snapshot.Match(s.filter.Pattern) {
			if err == nil && s.filter.Keep != nil && !s.filter.Keep(statement) {
				continue
			}
			if !yield(statement, err) || err != nil {
				return
			}
		}
	}
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
		return newLoader(s.ctx, r, s.snapshot), nil
	}
	view := s.filter.View
	view.At = e.Change.Commit.Revision
	snapshot, err := r.open(s.ctx, view)
	if err != nil {
		return nil, err
	}
	return newLoader(s.ctx, r, snapshot), nil
}
