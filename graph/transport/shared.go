package transport

import (
	"encoding/json"
	"sync"

	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// sharedResponsePlaces bounds the events that sharedResponses keeps. Package graph bounds the
// size of a result that is shared.
const sharedResponsePlaces = 64

// sharedResponses keeps the last events of results that streams share: they are woken together,
// and the first encodes the event for all. It is safe for concurrent use.
//
// An event is given for a result with the same data, as an object, at the same position. Data
// that is shared is immutable, and a place holds it, so that no other data is at its address.
type sharedResponses struct {
	mu     sync.Mutex // guards places
	places [sharedResponsePlaces]sharedResponse
}

type sharedResponse struct {
	data  json.RawMessage // nil for none
	at    kg.Position
	event sse.Event
}

// isSharedResponse reports whether the whole response of a result is in its data and position.
func isSharedResponse(result *operation.Result) bool {
	return result.Shared && len(result.Data) > 0 && len(result.Errors) == 0 && len(result.Cuts) == 0 && len(result.Hints) == 0
}

func (s *sharedResponses) placeOf(result *operation.Result) *sharedResponse {
	return &s.places[(uint64(result.Position.Revision)+uint64(result.Position.Index)+uint64(len(result.Data)))%sharedResponsePlaces]
}

func (s *sharedResponses) find(result *operation.Result) (event sse.Event, ok bool) {
	at := s.placeOf(result)
	s.mu.Lock()
	defer s.mu.Unlock()
	ok = len(at.data) == len(result.Data) && &at.data[0] == &result.Data[0] && at.at == result.Position
	if ok {
		event = at.event
	}
	return event, ok
}

func (s *sharedResponses) keep(result *operation.Result, event sse.Event) {
	at := s.placeOf(result)
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = sharedResponse{result.Data, result.Position, event}
}
