package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/internal/ws"
)

// Options of a Handler. A zero member means its default.
type Options struct {
	// MaxBodyBytes bounds a request body and a socket message.
	MaxBodyBytes int64
	// CompressBytes is the size from which answers are compressed for clients
	// that accept gzip. Streams are not compressed.
	CompressBytes int
	// UpToDateEvery is the interval at which an idle subscription gets the
	// position scanned to.
	UpToDateEvery time.Duration

	// MaxOperations bounds the concurrent operations on one socket or stream.
	MaxOperations int
	// MaxReservations bounds the reservations without a stream. ReserveTimeout
	// is how long a reservation waits for its stream.
	MaxReservations int
	ReserveTimeout  time.Duration
	// MaxPendingSockets bounds the sockets that have not sent connection_init.
	// One caller may have half of those that the others leave. They take no
	// slot among the streams.
	MaxPendingSockets int
	// Intake bounds the bytes of unanswered messages of sockets and of operations of the
	// single connection mode, and the minimal speed at which a message must arrive.
	Intake throttle.Intake
	// InitTimeout bounds the time until connection_init.
	InitTimeout time.Duration
	// WriteTimeout bounds the time to write one message to a socket.
	WriteTimeout time.Duration
	// Heartbeat is the interval of pings to a socket.
	Heartbeat time.Duration
	// Admit, if set, is called before each operation of a socket, with its
	// caller in the context: an operation there corresponds to a request
	// elsewhere. An error refuses the operation. leave is called when the
	// operation has been executed, or its subscription established.
	Admit func(ctx context.Context) (leave func(), err error)
	// OriginAllowed reports whether a page of the request's Origin may open a
	// socket. nil allows only the server's own pages.
	OriginAllowed func(*http.Request) bool
	// Observe, if set, is called for each executed operation or established
	// subscription with its type, and "ok", "partial" (data and errors) or
	// "failed".
	Observe func(kind, outcome string, took time.Duration)
	// Connect returns the caller of a socket's operations, given the caller
	// that opened the socket and the payload of connection_init (nil for
	// none). An error refuses the connection. ctx is the socket's context,
	// which end cancels. With a nil Connect the operations belong to the
	// caller that opened the socket, and the payload is ignored.
	Connect func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)
}

// Defaults and bounds of a Handler.
const (
	DefaultMaxBodyBytes  = 8 << 20 // room for an escaped literal of kg.DefaultLiteralBytes
	DefaultCompressBytes = 1400    // an answer that fits into one packet gains nothing
	DefaultUpToDateEvery = 15 * time.Second

	// MaxInitBytes bounds a socket message before connection_init was
	// accepted: room for a credential and little more.
	MaxInitBytes = 8 << 10

	DefaultMaxOperations   = 100
	DefaultMaxReservations = 1_000
	DefaultReserveTimeout  = 30 * time.Second
	DefaultPendingSockets  = ws.DefaultMaxPending
	DefaultInitTimeout     = 5 * time.Second
	DefaultWriteTimeout    = ws.DefaultWriteTimeout
	DefaultHeartbeat       = 15 * time.Second

	// MaxBodyDepth bounds the nesting of objects and lists in a body.
	MaxBodyDepth = 64
)

func (o Options) withDefaults() Options {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.CompressBytes = cmp.Or(o.CompressBytes, DefaultCompressBytes)
	o.UpToDateEvery = cmp.Or(o.UpToDateEvery, DefaultUpToDateEvery)
	o.MaxOperations = cmp.Or(o.MaxOperations, DefaultMaxOperations)
	o.MaxReservations = cmp.Or(o.MaxReservations, DefaultMaxReservations)
	o.MaxPendingSockets = cmp.Or(o.MaxPendingSockets, DefaultPendingSockets)
	o.Intake.Grace = cmp.Or(o.Intake.Grace, throttle.DefaultGrace)
	o.Intake.BytesPerSecond = cmp.Or(o.Intake.BytesPerSecond, throttle.DefaultBytesPerSecond)
	o.ReserveTimeout = cmp.Or(o.ReserveTimeout, DefaultReserveTimeout)
	o.InitTimeout = cmp.Or(o.InitTimeout, DefaultInitTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	if o.Observe == nil {
		o.Observe = func(string, string, time.Duration) {}
	}
	if o.Admit == nil {
		o.Admit = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return o
}
