// Package follow reads what stands now and then what changes, without a gap
// and without a duplicate between the two: the one way in which every protocol
// shows changes. What is followed is a Subject: Statements, Surroundings, or
// what its owner makes of commits.
package follow

import (
	"context"
	"iter"
	"sync/atomic"

	"koine/internal/operation"
	"koine/kg"
)

// Subject is what is followed. It belongs to one Following, which calls it from
// one goroutine at a time.
type Subject interface {
	// View is under whose eyes it is seen. It has no revision and no age.
	View() kg.View
	// Begin gives the filter for what comes behind the position.
	Begin(ctx context.Context, store *kg.Store, from kg.Position) (kg.Filter, error)
	// Stand yields what stands, with Snapshot set, and SnapshotEnd on the last;
	// nothing when nothing does.
	Stand(context.Context, *kg.Snapshot) iter.Seq2[operation.Event, error]
	// Changes yields what the watcher tells, and ends as it does.
	Changes(context.Context, *kg.Store, *kg.Watcher) iter.Seq2[operation.Event, error]
}

// Following is a registered subscription to a subject. Events is used once, from
// one goroutine; Position from any. It must be closed.
type Following struct {
	ctx      context.Context // that of the stream
	store    *kg.Store
	subject  Subject
	watcher  *kg.Watcher
	snapshot *kg.Snapshot // what stands first; nil without, and after it
	standing atomic.Bool  // the snapshot is not out yet
}

// Start registers it: when it returns, nothing behind its start can be missed.
// Without a start it shows the future only. It lives no longer than ctx. Errors
// are those of the subject, of Store.View and of Store.Watch.
func Start(ctx context.Context, store *kg.Store, subject Subject, from operation.Resume) (*Following, error) {
	f := &Following{ctx: ctx, store: store, subject: subject}
	position := from.After
	switch from.Start {
	case operation.Unsaid, operation.Latest:
		position = store.Head()
	case operation.Earliest:
		position = store.Oldest()
	case operation.Snapshot:
		snapshot, err := store.View(ctx, subject.View())
		if err != nil {
			return nil, err
		}
		f.snapshot, position = snapshot, snapshot.Position()
		f.standing.Store(true)
	}
	if err := f.watch(position); err != nil {
		f.closeSnapshot()
		return nil, err
	}
	return f, nil
}

func (f *Following) watch(from kg.Position) error {
	// What cannot be watched from is refused for that, before anything is read
	// there.
	if err := f.store.CheckPosition(from); err != nil {
		return err
	}
	filter, err := f.subject.Begin(f.ctx, f.store, from)
	if err != nil {
		return err
	}
	f.watcher, err = f.store.Watch(f.ctx, filter, from)
	return err
}

// Position is the one scanned to, and the zero Position while a snapshot is not
// out yet: one that is cut short can only be begun again.
func (f *Following) Position() kg.Position {
	if f.standing.Load() {
		return kg.Position{}
	}
	return f.watcher.Position()
}

// Snapshot is what stands, while its events are being yielded; nil otherwise.
func (f *Following) Snapshot() *kg.Snapshot { return f.snapshot }

// View takes a snapshot for what the events are told with (kg.Watcher.View).
func (f *Following) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	return f.watcher.View(ctx, v)
}

// Close gives the place back. Events must have ended.
func (f *Following) Close() {
	f.watcher.Close()
	f.closeSnapshot()
}

func (f *Following) closeSnapshot() {
	if f.snapshot != nil {
		f.snapshot.Close()
		f.snapshot = nil
	}
}

// Events yields what stands, if that was asked for, and then the changes; the
// events have no Result. It ends with an error: the context's, or a *kg.Error
// (CodeResync, CodeClosed, and those of the subject).
func (f *Following) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if f.snapshot != nil && !f.stand(yield) {
			return
		}
		f.subject.Changes(f.ctx, f.store, f.watcher)(yield)
	}
}

// stand yields what stands, its end with the position, and tells whether to go
// on.
func (f *Following) stand(yield func(operation.Event, error) bool) bool {
	defer f.closeSnapshot()
	at, ended := f.snapshot.Position(), false
	for e, err := range f.subject.Stand(f.ctx, f.snapshot) {
		e.Revision, e.Taken = at.Revision, f.snapshot.View().Now
		if ended = e.SnapshotEnd; ended {
			e.Position = at
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	if !ended && !yield(operation.Event{UpToDate: true, Position: at}, nil) {
		return false
	}
	f.standing.Store(false)
	return true
}

// Ending yields the elements and tells of each whether it is the last, and the
// error that ended them.
func Ending[T any](elements iter.Seq2[T, error], yield func(element T, last bool) bool) error {
	var held T
	some := false
	for element, err := range elements {
		if err != nil {
			return err
		}
		if some && !yield(held, false) {
			return nil
		}
		held, some = element, true
	}
	if some {
		yield(held, true)
	}
	return nil
}
