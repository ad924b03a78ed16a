package sse

import (
	"errors"
	"fmt"
	"time"
)

// The reasons for which a stream ends before its iterator does. Serve returns
// them, and StreamOptions.Last turns them into the dialect's last event.
var (
	// ErrSlowConsumer: the client did not take a block within the write
	// timeout. It may resume.
	ErrSlowConsumer = errors.New("sse: the client is too slow")
	// ErrShutdown: the server is going down. The client may resume later.
	ErrShutdown = errors.New("sse: the server is shutting down")
	// ErrClientGone: the client went away; nothing can be written any more.
	ErrClientGone = errors.New("sse: the client is gone")
	// ErrTooManyStreams: the server's places are taken.
	ErrTooManyStreams = errors.New("sse: too many streams")
	// ErrEventTooLarge: an event's block is larger than MaxEventBytes. On the
	// server it ends the producer's stream, on the client the subscription.
	ErrEventTooLarge = errors.New("sse: the event is too large")
	// ErrMalformed: an event that Server-Sent Events cannot carry: a line break
	// or NUL in its id or name, a carriage return in its data, or no content.
	ErrMalformed = errors.New("sse: malformed event")
	// ErrUnsupported: the response writer cannot flush or takes no deadlines,
	// so one stalled client would hold its stream for ever.
	ErrUnsupported = errors.New("sse: the response writer cannot stream")
	// ErrUsed: Serve was called a second time, or after Close.
	ErrUsed = errors.New("sse: the stream was served or closed before")
)

// Refused means that no byte of the stream was written: the caller must still answer
// the client.
type Refused struct {
	Reason     error
	RetryAfter time.Duration // when to try again; 0 if that would not help
}

func (e *Refused) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *Refused) Unwrap() error { return e.Reason }

// PanicError is a panic of the producer or of one of the stream's callbacks. It
// ends that stream and not the process.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("sse: panic: %v", e.Value) }
