package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
)

// Options of a Handler. The zero value of each means its default.
type Options struct {
	// MaxBodyBytes bounds a request's body, and a message of a socket.
	MaxBodyBytes int64
	// CompressBytes is the size from which an answer is compressed for a client
	// that takes gzip. What is streamed is not.
	CompressBytes int
	// UpToDateEvery is how often a subscription is told the position scanned to
	// while nothing matches.
	UpToDateEvery time.Duration

	// MaxOperations bounds the operations that are under way on one socket or
	// one stream.
	MaxOperations int
	// MaxReservations bounds the reservations that have no stream yet, and
	// ReserveTimeout how long one may have none.
	MaxReservations int
	ReserveTimeout  time.Duration
	// MaxPendingSockets bounds the sockets that have not sent connection_init, of
	// which one caller may have half of what the others leave. They take no place
	// among the streams.
	MaxPendingSockets int
	// Intake bounds what sockets sent and is not answered yet, and how slowly a
	// message may come.
	Intake throttle.Intake
	// InitTimeout is how long a socket may take to send connection_init.
	InitTimeout time.Duration
	// WriteTimeout is how long one message to a socket may take.
	WriteTimeout time.Duration
	// Heartbeat is how often a socket is asked whether it is still there.
	Heartbeat time.Duration
	// Admit, if set, is asked before each operation of a socket, for whoever the
	// context carries: an operation there is what a request is elsewhere. Its
	// error refuses the operation; leave is called when the operation has been
	// executed, or its subscription established.
	Admit func(ctx context.Context) (leave func(), err error)
	// OriginAllowed tells whether a page of the request's Origin may open a socket;
	// nil means only the server's own pages may.
	OriginAllowed func(*http.Request) bool
	// Observe, if set, is told of each operation that was executed, or established
	// if it is a subscription: its kind, and "ok", "partial" (data and errors) or
	// "failed".
	Observe func(kind, outcome string, took time.Duration)
	// Connect says whose the operations of a socket are, from who opened it and
	// the payload of its connection_init (nil if it had none). An error forbids
	// the connection. ctx is that of the socket, which end ends. Nil: they are of
	// who opened it, whatever the payload says.
	Connect func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)
}

// Defaults and bounds of a Handler.
const (
	DefaultMaxBodyBytes  = 8 << 20 // room for a literal of kg.DefaultLiteralBytes with its escapes
	DefaultCompressBytes = 1400    // what fits into one packet gains nothing
	DefaultUpToDateEvery = 15 * time.Second

	// MaxInitBytes bounds a message of a socket before connection_init was taken,
	// which has room for a credential and little more.
	MaxInitBytes = 8 << 10

	DefaultMaxOperations   = 100
	DefaultMaxReservations = 1_000
	DefaultReserveTimeout  = 30 * time.Second
	DefaultPendingSockets  = 1_024
	DefaultInitTimeout     = 5 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
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
