// Package changefeed delivers the present state and then the changes, without a gap or a
// duplicate between them: the single implementation of subscriptions for all protocols.
// A Subject defines the content: Statements, Surroundings, or one that another package
// derives from commits.
package changefeed

import (
	"context"
	"iter"
	"sync/atomic"

	"koine/internal/operation"
	"koine/kg"
)

// Subject is the content of a subscription. It belongs to one Following, which calls it
// from one goroutine at a time.
type Subject interface {
	// View returns the view of the subscription. It has no revision and no age.
	View() kg.View
	// Begin returns the filter for the changes after the position.
	Begin(ctx context.Context, store *kg.Store, from kg.Position) (kg.Filter, error)
	// Current yields the present state, with Snapshot set on each event and SnapshotEnd
	// on the last; nothing if it is empty.
	Current(context.Context, *kg.Snapshot) iter.Seq2[operation.Event, error]
	// Changes yields the events of the watcher and ends as the watcher does.
	Changes(context.Context, *kg.Store, *kg.Watcher) iter.Seq2[operation.Event, error]
}

// Following is a registered subscription to a subject. Use Events once, from one
// goroutine; Position is safe from any. It must be closed.
type Following struct {
	ctx        context.Context // of the stream
	store      *kg.Store
	subject    Subject
	watcher    *kg.Watcher
	snapshot   *kg.Snapshot // present state to deliver first; nil if none, and afterwards
	inSnapshot atomic.Bool  // the snapshot is not fully delivered yet
}

// Start registers a subscription: no change after its start can be missed once Start
// returns. Without a start it delivers the future only. It ends with ctx. Errors are
// those of the subject, of Store.View and of Store.Watch.
func Start(ctx context.Context, store *kg.Store, subject Subject, from operation.Resume) (*Following, error) {
	f := &Following{ctx: ctx, store: store, subject: subject}
	position := from.After
	switch from.Start {
	case operation.DefaultStart, operation.Latest:
		position = store.Head()
	case operation.Earliest:
		position = store.Oldest()
	case operation.Snapshot:
		snapshot, err := store.View(ctx, subject.View())
		if err != nil {
			return nil, err
		}
		f.snapshot, position = snapshot, snapshot.Position()
		f.inSnapshot.Store(true)
	}
	if err := f.startWatch(position); err != nil {
		f.closeSnapshot()
		return nil, err
	}
	return f, nil
}

func (f *Following) startWatch(from kg.Position) error {
	// Refuse an invalid position before reading anything.
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

// Position is the position scanned to. It is zero until the snapshot is delivered,
// because an interrupted snapshot can only be started again.
func (f *Following) Position() kg.Position {
	if f.inSnapshot.Load() {
		return kg.Position{}
	}
	return f.watcher.Position()
}

// Snapshot returns the snapshot while its events are being yielded; nil otherwise.
func (f *Following) Snapshot() *kg.Snapshot { return f.snapshot }

// View takes a snapshot to resolve the events with (kg.Watcher.View).
func (f *Following) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	return f.watcher.View(ctx, v)
}

// Close releases the subscription. Events must have ended.
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

// Events yields the present state, if requested, and then the changes; the events have
// no Result. It ends with an error: the context's, or a *kg.Error (CodeResync,
// CodeClosed, and those of the subject).
func (f *Following) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if f.snapshot != nil && !f.yieldSnapshot(yield) {
			return
		}
		f.subject.Changes(f.ctx, f.store, f.watcher)(yield)
	}
}

// yieldSnapshot yields the snapshot and its end with the position, and reports whether to
// continue.
func (f *Following) yieldSnapshot(yield func(operation.Event, error) bool) bool {
	defer f.closeSnapshot()
	at, ended := f.snapshot.Position(), false
	for e, err := range f.subject.Current(f.ctx, f.snapshot) {
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
	f.inSnapshot.Store(false)
	return true
}

// MarkLast yields the elements with a flag that marks the last one, and returns the error
// that ended them.
func MarkLast[T any](elements iter.Seq2[T, error], yield func(element T, last bool) bool) error {
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
