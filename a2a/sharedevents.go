package a2a

import (
	"bytes"
	"encoding/json"
	"sync"

	"koine/internal/operation"
	"koine/kg"
)

// Bounds of sharedEvents.
const (
	sharedEventPlaces = 64
	maxSharedEvent    = 16 << 10 // the size of the largest encoding that is kept
)

// sharedEvents keeps the last encodings of changes: streams that show the same of a change are
// woken together, and the first encodes it for all. It is safe for concurrent use.
//
// Streams show the same only if everything that is encoded is equal: the change as the reader
// sees it, in the same commit as the reader sees it, and the selection. Who sees less of one of
// them has another event, and so another encoding.
type sharedEvents struct {
	mu     sync.Mutex // guards places
	places [sharedEventPlaces]sharedEvent
}

type sharedEvent struct {
	change    kg.Event
	after     kg.Position // of the event
	selection []byte
	position  string
	json      any // json.RawMessage, immutable; nil for none
}

// encodeChange is encoder.encodeChange with the encoding of an equal event, if it is kept. Its frame
// and that of find are small, because all streams call them where their stacks are deepest.
func (s *sharedEvents) encodeChange(e *encoder, ev *operation.Event, i int) (result, error) {
	if !isShared(ev) {
		return e.encodeAlone(ev, i)
	}
	if known := s.find(ev); known.value != nil {
		return known, nil
	}
	return s.encodeForAll(e, ev, i)
}

// placeOf returns the place of the event's encoding.
func (s *sharedEvents) placeOf(ev *operation.Event) *sharedEvent {
	return &s.places[(uint64(ev.Position.Revision)+uint64(ev.Position.Index)+uint64(len(ev.Result.Data)))%sharedEventPlaces]
}

// find returns the encoding of an equal event, without a value if it is not kept.
func (s *sharedEvents) find(ev *operation.Event) result {
	at := s.placeOf(ev)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.json != nil && at.after == ev.Position && bytes.Equal(at.selection, ev.Result.Data) && operation.SameChange(&at.change, &ev.Changes[0]) {
		return result{value: at.json, position: at.position}
	}
	return result{}
}

//go:noinline
func (e *encoder) encodeAlone(ev *operation.Event, i int) (result, error) {
	event, position, err := e.encodeChange(ev, i)
	return result{value: event, position: position}, err
}

// encodeForAll encodes the event and keeps the encoding.
//
//go:noinline
func (s *sharedEvents) encodeForAll(e *encoder, ev *operation.Event, i int) (result, error) {
	event, position, err := e.encodeChange(ev, i)
	if err != nil {
		return result{}, err
	}
	raw, err := appendJSON(nil, event)
	if err != nil {
		return result{}, err
	}
	if len(raw) <= maxSharedEvent {
		s.mu.Lock()
		*s.placeOf(ev) = sharedEvent{ev.Changes[0], ev.Position, bytes.Clone(ev.Result.Data), position, json.RawMessage(raw)}
		s.mu.Unlock()
	}
	return result{value: json.RawMessage(raw), position: position}, nil
}

// isShared reports whether the encoding of an event is kept.
func isShared(ev *operation.Event) bool {
	return len(ev.Result.Errors) == 0 && operation.IsShared(ev)
}
