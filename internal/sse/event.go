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
	// Data may span lines; each becomes a data line. A stream keeps it until it
	// is written: it must not change after it was yielded.
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

// blockSize is the exact number of bytes of e on the wire. The bound on events
// and the account of what is in flight both count it.
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
var heartbeat = &r3labs.Event{Comment: []byte(": ")}

const heartbeatSize = len(": \n\n")

// toLibrary converts e to the form in which it passes through r3labs/sse. The library
// treats an event without data as the end of the stream, unless it is a comment; so
// such an event travels as the comment ": <lines>", from which the writer removes the
// mark.
func (e Event) toLibrary(ids bool) *r3labs.Event {
	if len(e.Data) > 0 {
		return &r3labs.Event{ID: []byte(e.ID), Event: []byte(e.Name), Data: e.Data}
	}
	var lines []string
	if ids && e.ID != "" {
		lines = append(lines, "id: "+e.ID)
	}
	if e.Name != "" {
		lines = append(lines, "event: "+e.Name)
	}
	if !e.isPosition() {
		lines = append(lines, "data: ")
	}
	return &r3labs.Event{Comment: []byte(strings.Join(lines, "\n"))}
}
