package sse

import (
	"bytes"
	"fmt"
	"strings"

	r3labs "github.com/r3labs/sse/v2"
)

// Event is one block of a stream.
//
// An event with an ID only is a position: it tells a client that asked for ids
// where to resume from, and is not sent to one that did not.
type Event struct {
	// ID is the position to resume from after this event, or "" for none.
	ID string
	// Name is the event's type; "" is "message".
	Name string
	// Data may span lines; each becomes a data line. A stream reads it only until the
	// next event is pulled.
	Data []byte
}

// isPosition reports whether e is an id and nothing else.
func (e Event) isPosition() bool { return e.ID != "" && e.Name == "" && len(e.Data) == 0 }

// validate returns an error for content that a block cannot carry. A carriage return also
// ends a line, so data with one would arrive changed.
func (e Event) validate() error {
	switch {
	case strings.ContainsAny(e.ID, "\r\n\x00"):
		return fmt.Errorf("%w: line break or NUL in the id", ErrMalformed)
	case strings.ContainsAny(e.Name, "\r\n\x00"):
		return fmt.Errorf("%w: line break or NUL in the name", ErrMalformed)
	case bytes.IndexByte(e.Data, '\r') >= 0:
		return fmt.Errorf("%w: carriage return in the data", ErrMalformed)
	case e.ID == "" && e.Name == "" && len(e.Data) == 0:
		return fmt.Errorf("%w: no content", ErrMalformed)
	}
	return nil
}

// blockSize is the exact number of bytes of e on the wire.
func (e Event) blockSize(ids bool) int {
	size := len("\n")
	if ids && e.ID != "" {
		size += len("id: \n") + len(e.ID)
	}
	if e.isPosition() {
		return size
	}
	if e.Name != "" {
		size += len("event: \n") + len(e.Name)
	}
	breaks := bytes.Count(e.Data, []byte("\n"))
	return size + (breaks+1)*len("data: \n") + len(e.Data) - breaks
}

// heartbeat is the block ": \n\n", which a client ignores.
var heartbeat = &r3labs.Event{Comment: []byte{}}

// toLibrary converts e to an event of r3labs/sse, which has a data line if its data is not
// nil.
func (e Event) toLibrary(ids bool) *r3labs.Event {
	out := &r3labs.Event{Data: e.Data}
	if ids && e.ID != "" {
		out.ID = []byte(e.ID)
	}
	if e.isPosition() {
		out.Data = nil
		return out
	}
	if e.Name != "" {
		out.Event = []byte(e.Name)
	}
	if out.Data == nil {
		out.Data = []byte{}
	}
	return out
}
