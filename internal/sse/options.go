package sse

import (
	"cmp"
	"context"
	"time"
)

// Defaults and bounds of the server side.
const (
	DefaultHeartbeat     = 15 * time.Second
	DefaultWriteTimeout  = 10 * time.Second
	DefaultLastTimeout   = 2 * time.Second
	DefaultMaxStreams    = 10_000
	DefaultMaxEventBytes = 16 << 20
	DefaultSendBuffer    = 64 << 10
	DefaultRetryAfter    = 5 * time.Second
)

// The heartbeat ticker looks at the streams four times per heartbeat, but not
// more and not less often than this.
const (
	minTick = 5 * time.Millisecond
	maxTick = 250 * time.Millisecond
)

// Options configures a Server. Zero values select defaults.
type Options struct {
	// Heartbeat is how long a stream may be silent before it gets a heartbeat.
	Heartbeat time.Duration
	// WriteTimeout is how long one block may take to be written.
	WriteTimeout time.Duration
	// LastTimeout is how long an ending stream may take to write the event in hand and
	// its last event.
	LastTimeout time.Duration
	// MaxStreams bounds the streams that are open at a time.
	MaxStreams int
	// MaxEventBytes bounds the block of one event.
	MaxEventBytes int
	// SendBuffer is the size asked of the kernel for a stream's send buffer, if
	// the HTTP server uses ConnContext. Without it the kernel takes megabytes
	// before a stalled client is noticed.
	SendBuffer int
	// RetryAfter is the hint given with a refusal.
	RetryAfter time.Duration
	// Admit, if set, is called before a stream is opened, with the context of its
	// request. Its error refuses the stream (Refused wraps it); release is called once,
	// when the stream has released its place.
	Admit func(context.Context) (release func(), err error)
	// Ended, if set, is called with each end that a protocol reports (Server.ReportEnd).
	Ended func(context.Context, End)
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.LastTimeout = cmp.Or(o.LastTimeout, DefaultLastTimeout)
	o.MaxStreams = cmp.Or(o.MaxStreams, DefaultMaxStreams)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, DefaultMaxEventBytes)
	o.SendBuffer = cmp.Or(o.SendBuffer, DefaultSendBuffer)
	o.RetryAfter = cmp.Or(o.RetryAfter, DefaultRetryAfter)
	return o
}

// StreamOptions configures one stream. Its functions may be called from any goroutine,
// one at a time; they must not block and must not use the stream.
type StreamOptions struct {
	// Heartbeat replaces the server's interval; 0 keeps it. The ticker is no
	// finer than a quarter of the server's interval (at most 250 ms).
	Heartbeat time.Duration
	// IDs means that the client requested id lines. Without it none is sent, and a
	// block of an unnamed event begins with "data: " (docs/reference/json-rpc.md).
	IDs bool
	// From is the position at which the stream starts. Position and Last get it until
	// an event has carried an ID.
	From string
	// Position makes a heartbeat an id-only block, if IDs is set: it returns the
	// position up to which everything has been yielded, or "" for a comment.
	// The argument is the ID last sent; the answer must not lie before it, and
	// must not lie after an event that has not been yielded yet.
	Position func(last string) string
	// Last returns the last event, which tells the client why the stream ends before
	// its iterator, or false for none. The second argument is the ID of the last event
	// before it, to resume from: yielded events that were not written do not count. It
	// is not called when the client is gone or when the iterator ended by itself.
	Last func(reason error, last string) (Event, bool)
}
