package transport

import (
	"koine/internal/operation"
	"koine/internal/recent"
	"koine/internal/sse"
	"koine/kg"
)

// sharedEvents is how many events of results that streams share are kept. Package graph bounds the
// size of such a result.
const sharedEvents = 64

// sharedResult names a result that streams share: they are woken together, and the first encodes
// its event for all. The data is the same object: it is immutable, and its place holds it, so that
// no other data is at its address.
type sharedResult struct {
	data *byte // the first
	size int
	at   kg.Position
}

func newSharedEvents() *recent.Values[sharedResult, sse.Event] {
	return recent.New[sharedResult, sse.Event](sharedEvents)
}

// isSharedResponse reports whether the whole response of a result is in its data and position.
func isSharedResponse(result *operation.Result) bool {
	return result.Shared && len(result.Data) > 0 && len(result.Errors) == 0 && len(result.Cuts) == 0 && len(result.Hints) == 0
}

// encodeShared returns the event of a result that streams share. All of them are resumable.
func (h *Handler) encodeShared(result *operation.Result) sse.Event {
	number := uint64(result.Position.Revision) + uint64(result.Position.Index) + uint64(len(result.Data))
	key := sharedResult{&result.Data[0], len(result.Data), result.Position}
	event, ok := h.shared.Find(number, key)
	if !ok {
		event = h.encodeNext(result, true)
		h.shared.Keep(number, key, event)
	}
	return event
}
