package a2a

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"koine/internal/operation"
	"koine/kg"
)

// Bounds of sharedEvents.
const (
	sharedEventPlaces = 64
	// maxSharedEvent is the size of the largest encoding that is kept, and maxSharedChanges
	// the size of the largest commit.
	maxSharedEvent   = 16 << 10
	maxSharedChanges = 64
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
	json      json.RawMessage // immutable; nil for none
}

// encodeChange is encoder.encodeChange with the encoding of an equal event, if it is kept.
func (s *sharedEvents) encodeChange(e *encoder, ev *operation.Event, i int) (any, string, error) {
	if !isShared(ev) {
		return e.encodeChange(ev, i)
	}
	selection := ev.Result.Data
	at := &s.places[(uint64(ev.Position.Revision)+uint64(ev.Position.Index)+uint64(len(selection)))%sharedEventPlaces]
	s.mu.Lock()
	known := *at
	s.mu.Unlock()
	if known.json != nil && known.after == ev.Position && bytes.Equal(known.selection, selection) && sameChange(&known.change, &ev.Changes[0]) {
		return known.json, known.position, nil
	}
	event, position, err := e.encodeChange(ev, i)
	if err != nil {
		return nil, "", err
	}
	raw, err := appendJSON(nil, event)
	if err != nil {
		return nil, "", err
	}
	if len(raw) <= maxSharedEvent {
		s.mu.Lock()
		*at = sharedEvent{ev.Changes[0], ev.Position, bytes.Clone(selection), position, raw}
		s.mu.Unlock()
	}
	return json.RawMessage(raw), position, nil
}

// isShared reports whether the encoding of an event is kept.
func isShared(ev *operation.Event) bool {
	return len(ev.Changes) == 1 && !ev.Snapshot && len(ev.Result.Errors) == 0 && len(ev.Changes[0].Commit.Changes) <= maxSharedChanges
}

// sameChange reports whether two readers see the same of a change. Their commits are the same
// object, unless something of it is hidden from one of them.
func sameChange(a, b *kg.Event) bool {
	return a.Commit == b.Commit && a.Position == b.Position && a.Op == b.Op && a.StatementRemains == b.StatementRemains && a.Types == b.Types &&
		a.Replaced == nil && b.Replaced == nil && sameStatement(a.Statement, b.Statement) && slices.EqualFunc(a.Previous, b.Previous, sameStatement)
}

func sameStatement(a, b kg.Statement) bool {
	return a.Quad == b.Quad && slices.EqualFunc(a.Assertions, b.Assertions, sameAssertion)
}

func sameAssertion(a, b kg.Assertion) bool {
	return a.Source == b.Source && a.Certainty == b.Certainty && a.HasCertainty == b.HasCertainty && a.Time.Equal(b.Time) &&
		a.Validity == b.Validity && bytes.Equal(a.Provenance, b.Provenance) && a.Embedding == b.Embedding && a.Revision == b.Revision
}
