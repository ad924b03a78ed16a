package a2a

import (
	"sync/atomic"

	"koine/internal/operation"
	"koine/kg"
)

// changeFeed yields the events of a subscription to changes in their wire form.
type changeFeed struct {
	store        *kg.Store
	subscription operation.Subscription
	encoder      encoder
	// held is set while an event is on its way that the position scanned to
	// already counts: a heartbeat must not tell a position while events in
	// front of it are not out. In a snapshot that is all the time.
	held atomic.Bool
}

// newChangeFeed wraps the subscription, which the feed's close gives back.
func newChangeFeed(store *kg.Store, s operation.Subscription, snapshot bool) *feed {
	f := &changeFeed{store: store, subscription: s, encoder: encoder{store: store}}
	f.held.Store(snapshot)
	out := &feed{results: f.results, position: f.position, close: s.Close}
	if !snapshot { // one that is cut short cannot be resumed, only begun again
		out.start = store.FormatPosition(s.Position())
	}
	return out
}

func (f *changeFeed) position() string {
	if f.held.Load() {
		return ""
	}
	return f.store.FormatPosition(f.subscription.Position())
}

func (f *changeFeed) results(yield func(result, error) bool) {
	for ev, err := range f.subscription.Events() {
		if err != nil {
			yield(result{}, err)
			return
		}
		f.held.Store(true)
		out, err := f.encode(&ev)
		if !yield(out, err) || err != nil {
			return
		}
		f.held.Store(ev.Snapshot && !ev.SnapshotEnd)
	}
}

func (f *changeFeed) encode(ev *operation.Event) (result, error) {
	if ev.Change == nil { // up to date
		return result{position: f.store.FormatPosition(ev.Position)}, nil
	}
	event, position, err := f.encoder.event(ev)
	return result{value: event, position: position}, err
}
