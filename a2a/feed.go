package a2a

import (
	"sync"

	"koine/internal/operation"
	"koine/kg"
)

// changeFeed encodes the events of a subscription to changes.
type changeFeed struct {
	store        *kg.Store
	subscription operation.Subscription
	encoder      encoder
	shared       *sharedEvents
	// mu guards held and out.
	mu sync.Mutex
	// held is set while an event is being written that the position scanned to may
	// already include: a heartbeat must not report that position before the event is
	// out.
	held bool
	// out is the position of the last written event, which the position scanned to may
	// not include yet: a heartbeat must not go back.
	out kg.Position
}

// newChangeFeed wraps the subscription, which closing the feed releases.
func (h *Handler) newChangeFeed(s operation.Subscription) *feed {
	f := &changeFeed{store: h.store, subscription: s, encoder: encoder{store: h.store}, shared: &h.events}
	return &feed{results: f.yieldResults, start: f.formatPosition(s.Position()), position: f.safePosition, close: s.Close}
}

func (f *changeFeed) safePosition() string {
	f.mu.Lock()
	held, out := f.held, f.out
	f.mu.Unlock()
	if held {
		return ""
	}
	scanned := f.subscription.Position()
	if scanned != (kg.Position{}) && scanned.Compare(out) < 0 {
		scanned = out
	}
	return f.formatPosition(scanned)
}

// markEvent records that the event is being written, or that it is out.
func (f *changeFeed) markEvent(ev *operation.Event, out bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = !out
	if out {
		f.out = ev.Position
	}
}

// formatPosition formats a position; the zero Position inside a snapshot gives "", because an
// interrupted snapshot can only be started again.
func (f *changeFeed) formatPosition(p kg.Position) string {
	if p == (kg.Position{}) {
		return ""
	}
	return f.store.FormatPosition(p)
}

func (f *changeFeed) yieldResults(yield func(result, error) bool) {
	part := 0 // number of the part of the snapshot
	for ev, err := range f.subscription.Events() {
		if err != nil {
			yield(result{}, err)
			return
		}
		f.markEvent(&ev, false)
		if !f.yieldEvent(&ev, part, yield) {
			return
		}
		f.markEvent(&ev, true)
		part++
	}
}

// yieldEvent yields the encoded event, one result for each change, and reports whether to
// continue.
func (f *changeFeed) yieldEvent(ev *operation.Event, part int, yield func(result, error) bool) bool {
	if ev.UpToDate || ev.Empty {
		return yield(result{position: f.store.FormatPosition(ev.Position)}, nil)
	}
	if len(ev.Changes) == 0 || ev.Replaced() != nil {
		out, err := f.encodeOther(ev, part)
		return yield(out, err) && err == nil
	}
	for i := range ev.Changes {
		out, err := f.shared.encodeChange(&f.encoder, ev, i)
		if !yield(out, err) || err != nil {
			return false
		}
	}
	return true
}

// encodeOther encodes the replacement of a graph, or a part of a snapshot that is not a statement.
//
//go:noinline
func (f *changeFeed) encodeOther(ev *operation.Event, part int) (result, error) {
	if r := ev.Replaced(); r != nil {
		event, position, err := f.encoder.encodeReplaced(ev, r)
		return result{value: event, position: position}, err
	}
	event, position, err := f.encoder.encodeStanding(ev, part)
	return result{value: event, position: position}, err
}
