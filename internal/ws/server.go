package ws

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/throttle"
)

// Close codes that protocols share, beside those of RFC 6455.
const (
	StatusUnauthorized websocket.StatusCode = 4401
	StatusForbidden    websocket.StatusCode = 4403
	StatusSubprotocol  websocket.StatusCode = 4406
)

// Defaults of the Options.
const (
	DefaultMaxPending   = 1_024
	DefaultWriteTimeout = 10 * time.Second
)

// MaxReasonBytes is the room for a reason in a close frame (RFC 6455, section 5.5).
const MaxReasonBytes = 123

// Options configures a Server. All members without a comment that allows their absence are
// required.
type Options struct {
	// Streams counts the connections among the streams, and ends them with these.
	Streams *sse.Server
	// Intake bounds the unanswered messages, and the slowness of one.
	Intake throttle.Intake
	// Subprotocol is required of the client, unless it is empty.
	Subprotocol string
	// OriginChecked means that the caller of Accept has checked the Origin header.
	// Otherwise only pages of the server's own origin may connect.
	OriginChecked bool
	// MaxPending bounds the connections that are not admitted yet. A caller may have half
	// of the remaining places. They do not count as streams.
	MaxPending int
	// FirstTimeout is the time limit of Conn.Admit. ErrFirst is the cause of the end behind it.
	FirstTimeout time.Duration
	ErrFirst     error
	// MaxFirstBytes bounds a message before Conn.Admit, MaxBytes one after.
	MaxFirstBytes, MaxBytes int64
	// ErrLate is the cause of the end of a connection with an incomplete message.
	ErrLate error
	// WriteTimeout is the time limit of writing a message.
	WriteTimeout time.Duration
	// PingInterval is the interval of pings, PongTimeout the time limit of their answers.
	PingInterval, PongTimeout time.Duration
	// CloseReason returns the close frame for the cause of an end. With the code 0 the
	// connection is closed without one.
	CloseReason func(cause error) (websocket.StatusCode, string)
	// Panicked is told of a panic and returns the cause of the end.
	Panicked func(p any) error
}

// Server accepts the connections of a protocol. It is safe for concurrent use.
type Server struct {
	options Options
	pending *throttle.Pool // connections that are not admitted
}

// NewServer returns a Server.
func NewServer(o Options) *Server {
	return &Server{options: o, pending: throttle.NewPool(int64(o.MaxPending))}
}

// Accept upgrades a request. With admitted, the client has introduced itself with the request;
// otherwise the protocol must call Conn.Admit within Options.FirstTimeout. If err is not nil
// nothing was answered. If both results are nil the client was refused.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, admitted bool) (c *Conn, err error) {
	o := &s.options
	c = &Conn{server: s, owner: throttle.OwnerOf(caller.From(r.Context())), admitted: admitted, settle: func() {}}
	// A client learns at once that no place is free. One that must still introduce itself
	// takes its place then.
	if c.leave, err = o.Streams.Acquire(r.Context()); err != nil {
		return nil, err
	}
	if !admitted {
		c.leave()
		c.leave = func() {}
		if !s.pending.Acquire(c.owner, 1) {
			return nil, &sse.Refused{Reason: sse.ErrTooManyStreams, RetryAfter: sse.DefaultRetryAfter}
		}
		owner := c.owner
		c.settle = sync.OnceFunc(func() { s.pending.Release(owner, 1) })
	}
	if c.place, err = o.Streams.Attach(r.Context()); err != nil {
		c.free()
		return nil, err
	}
	accept := websocket.AcceptOptions{InsecureSkipVerify: o.OriginChecked}
	if o.Subprotocol != "" {
		accept.Subprotocols = []string{o.Subprotocol}
	}
	if c.conn, err = websocket.Accept(&smallBuffers{w}, r, &accept); err != nil {
		c.free()
		return nil, nil // it has answered
	}
	if c.conn.Subprotocol() != o.Subprotocol {
		_ = c.conn.Close(StatusSubprotocol, "Subprotocol not acceptable") // the client may be gone
		c.free()
		return nil, nil
	}
	sse.BoundSendBuffer(r, sse.DefaultSendBuffer)
	c.conn.SetReadLimit(o.MaxBytes)
	if !admitted {
		c.conn.SetReadLimit(o.MaxFirstBytes)
	}
	c.ctx, c.cancel = context.WithCancelCause(c.place.Context())
	c.writing, c.stopWriting = context.WithCancel(context.WithoutCancel(c.ctx))
	c.pinger = time.AfterFunc(o.PingInterval, c.ping)
	c.pinger.Stop() // until Serve
	return c, nil
}

// The sizes of a connection's buffers. Longer messages bypass them.
const (
	readBuffer  = 512
	writeBuffer = 1 << 10
)

// smallBuffers replaces the buffers of a connection that is upgraded. Those of HTTP have 4 KiB
// each, and most connections are idle.
type smallBuffers struct{ http.ResponseWriter }

func (s *smallBuffers) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := make([]byte, buffers.Reader.Buffered()) // sent before the answer
	if _, err := io.ReadFull(buffers, early); err != nil {
		conn.Close()
		return nil, nil, err
	}
	// The HTTP server keeps its reader, so the buffer is replaced inside it.
	*buffers.Reader = *bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), max(readBuffer, len(early)))
	buffers.Writer = bufio.NewWriterSize(conn, writeBuffer)
	if _, err := buffers.Peek(len(early)); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, buffers, nil
}
