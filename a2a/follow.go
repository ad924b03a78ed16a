package a2a

import (
	"context"
	"iter"
	"slices"

	"koine/internal/operation"
	"koine/kg"
)

// following is a subscription to what a filter selects: what stands now, if
// that was asked for, and then what changes.
type following struct {
	watcher  *kg.Watcher
	snapshot *kg.Snapshot // nil without one
	filter   kg.Filter
}

// follow registers it. Without a start it shows the future only.
func follow(ctx context.Context, store *kg.Store, filter kg.Filter, resume operation.Resume) (operation.Subscription, error) {
	f := &following{filter: filter}
	from := resume.After
	switch resume.Start {
	case operation.Unsaid, operation.Latest:
		from = store.Head()
	case operation.Earliest:
		from = store.Oldest()
	case operation.Snapshot:
		snapshot, err := store.View(ctx, filter.View)
		if err != nil {
			return nil, err
		}
		f.snapshot, from = snapshot, snapshot.Position()
	}
	watcher, err := store.Watch(ctx, filter, from)
	if err != nil {
		f.closeSnapshot()
		return nil, err
	}
	f.watcher = watcher
	return f, nil
}

// Position is the one scanned to.
func (f *following) Position() kg.Position { return f.watcher.Position() }

// Close gives the watcher and the snapshot back. The events must have ended.
func (f *following) Close() {
	f.watcher.Close()
	f.closeSnapshot()
}

func (f *following) closeSnapshot() {
	if f.snapshot != nil {
		f.snapshot.Close()
		f.snapshot = nil
	}
}

// Events yields the snapshot, if there is one, and then the changes.
func (f *following) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if f.snapshot != nil && !f.standing(yield) {
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

// standing yields the statements of the snapshot, the last of them marked, and
// tells whether to go on.
func (f *following) standing(yield func(operation.Event, error) bool) bool {
	defer f.closeSnapshot()
	at := f.snapshot.Position()
	var held *operation.Event // not yielded yet: it might be the last
	for st, err := range f.statements() {
		if err != nil {
			yield(operation.Event{}, err)
			return false
		}
		if held != nil && !yield(*held, nil) {
			return false
		}
		held = &operation.Event{Snapshot: true, Change: &kg.Event{Op: kg.Add, Statement: st, Position: at}}
	}
	if held == nil {
		return yield(operation.Event{UpToDate: true, Position: at}, nil)
	}
	held.SnapshotEnd, held.Position = true, at
	return yield(*held, nil)
}

func (f *following) statements() iter.Seq2[kg.Statement, error] {
	return func(yield func(kg.Statement, error) bool) {
		if len(f.filter.Ops) > 0 && !slices.Contains(f.filter.Ops, kg.Add) {
			return
		}
		for st, err := range f.snapshot.Match(f.filter.Pattern) {
			if err == nil && f.filter.Keep != nil && !f.filter.Keep(st) {
				continue
			}
			if !yield(st, err) {
				return
			}
		}
	}
}
