// Package follow reads what stands now and then what changes, without a gap
// and without a duplicate between the two: the one way in which every protocol
// shows changes.
package follow

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"koine/internal/operation"
	"koine/kg"
)

// Following is a registered subscription to what a filter selects. Events is
// used once, from one goroutine; Position from any. It must be closed.
type Following struct {
	filter   kg.Filter
	watcher  *kg.Watcher
	snapshot *kg.Snapshot // what stands first; nil without, and after it
	standing atomic.Bool  // the snapshot is not out yet
}

// Start registers it: when it returns, nothing behind its start can be missed.
// Without a start it shows the future only. It lives no longer than ctx. Errors
// are those of Store.View and Store.Watch.
func Start(ctx context.Context, store *kg.Store, filter kg.Filter, from operation.Resume) (*Following, error) {
	f := &Following{filter: filter}
	position := from.After
	switch from.Start {
	case operation.Unsaid, operation.Latest:
		position = store.Head()
	case operation.Earliest:
		position = store.Oldest()
	case operation.Snapshot:
		snapshot, err := store.View(ctx, filter.View)
		if err != nil {
			return nil, err
		}
		f.snapshot, position = snapshot, snapshot.Position()
		f.standing.Store(true)
	}
	watcher, err := store.Watch(ctx, filter, position)
	if err != nil {
		f.closeSnapshot()
		return nil, err
	}
	f.watcher = watcher
	return f, nil
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
// (CodeResync, CodeClosed).
func (f *Following) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if f.snapshot != nil && !f.stand(yield) {
			return
		}
		for change, err := range f.watcher.Events() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			if !yield(operation.Event{Change: &change, Position: change.Position}, nil) {
				return
			}
		}
	}
}

// stand yields the statements of the snapshot, the last of them marked, and
// tells whether to go on.
func (f *Following) stand(yield func(operation.Event, error) bool) bool {
	defer f.closeSnapshot()
	at := f.snapshot.Position()
	var held *operation.Event // not yielded yet: it may be the last
	for statement, err := range f.statements() {
		if err != nil {
			yield(operation.Event{}, err)
			return false
		}
		if held != nil && !yield(*held, nil) {
			return false
		}
		held = &operation.Event{Snapshot: true, Change: &kg.Event{Op: kg.Add, Statement: statement, Position: at}}
	}
	last := operation.Event{UpToDate: true}
	if held != nil {
		last = *held
		last.SnapshotEnd = true
	}
	last.Position = at
	if !yield(last, nil) {
		return false
	}
	f.standing.Store(false)
	return true
}

func (f *Following) statements() iter.Seq2[kg.Statement, error] {
	return func(yield func(kg.Statement, error) bool) {
		if f.filter.Ops != nil && !slices.Contains(f.filter.Ops, kg.Add) {
			return
		}
		for statement, err := range f.snapshot.Match(f.filter.Pattern) {
			if err == nil && f.filter.Keep != nil && !f.filter.Keep(statement) {
				continue
			}
			if !yield(statement, err) || err != nil {
				return
			}
		}
	}
}
