package sse

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	r3labs "github.com/r3labs/sse/v2"
)

// writer writes the blocks of a stream, each under a deadline.
//
// Stream.mu is held while a block is written. setLastDeadline may be called from any
// goroutine.
type writer struct {
	stream *Stream
	direct *r3labs.Direct
	dead   bool // a write failed; nothing can be written any more

	// A timer watches each block, in place of a deadline set and cleared on the
	// connection per block: on HTTP/2 a deadline that is left standing ends an
	// idle stream, and setting one costs a message to the connection's loop.
	timer *time.Timer

	mu      sync.Mutex // guards the fields below and all use of the deadline
	writing bool
	began   time.Duration // when the block was begun, as Server.sinceStart
	hurried bool          // the deadline of the end is set
	closed  bool          // the handler has returned: limit must not be used
	limit   deadline
}

// deadline is a response or its connection.
type deadline interface{ SetWriteDeadline(time.Time) error }

// newWriter clears the HTTP server's own read and write timeouts, which are for
// ordinary answers, and checks that w can stream.
func newWriter(st *Stream, w http.ResponseWriter) (*writer, error) {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Time{}); err != nil {
		return nil, errors.Join(ErrUnsupported, err)
	}
	if err := rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, errors.Join(ErrUnsupported, err)
	}
	wr := &writer{stream: st, limit: rc}
	wr.timer = time.AfterFunc(st.server.options.WriteTimeout, wr.checkTimeout)
	wr.timer.Stop()
	return wr, nil
}

// sendHeader sends the status and the header.
func (w *writer) sendHeader(response http.ResponseWriter) {
	w.watchWrite(func() (err error) {
		w.direct, err = w.stream.server.hub.OpenDirect(response)
		return err
	})
}

// sendBlock sends a block and reports whether it was written.
func (w *writer) sendBlock(e *r3labs.Event) bool {
	if !w.dead {
		w.watchWrite(func() error { return w.direct.Send(e) })
	}
	return !w.dead
}

// watchWrite watches a write. An error ends the stream.
func (w *writer) watchWrite(write func() error) {
	w.startTimer()
	err := write()
	w.stopTimer()
	if err != nil {
		w.dead = true
		w.stream.cancel(ErrClientGone) // unless there is a reason already
	}
}

func (w *writer) startTimer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing, w.began = true, w.stream.server.sinceStart()
	w.timer.Reset(w.stream.server.options.WriteTimeout)
}

func (w *writer) stopTimer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	w.timer.Stop()
}

// checkTimeout ends the stream of a client that did not read a block in time. The write
// itself may continue for LastTimeout: after a failed write nothing can follow on a
// connection, so an immediate deadline would also cut off the last event of a client
// that is merely slow.
func (w *writer) checkTimeout() {
	w.mu.Lock()
	late := w.writing && w.stream.server.sinceStart()-w.began >= w.stream.server.options.WriteTimeout
	w.mu.Unlock()
	if late { // else the timer was about an earlier block
		w.stream.cancel(ErrSlowConsumer)
	}
}

// setLastDeadline sets the deadline of the remaining writes: now if the client is gone.
func (w *writer) setLastDeadline() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.hurried {
		return
	}
	w.hurried = true
	deadline := time.Now()
	if w.stream.endReason() != ErrClientGone {
		deadline = deadline.Add(w.stream.server.options.LastTimeout)
	}
	// SetWriteDeadline succeeded at the start; a failure now means that the connection
	// is closed.
	_ = w.limit.SetWriteDeadline(deadline)
}

// takeConn continues on a connection that was taken from net/http, which cleared its deadline.
func (w *writer) takeConn(conn net.Conn) {
	w.stream.mu.Lock() // no heartbeat is being written
	w.stream.request = nil
	w.direct.Take(conn)
	w.stream.mu.Unlock()
	w.mu.Lock()
	again := w.hurried
	w.limit, w.hurried = conn, false
	w.mu.Unlock()
	if again {
		w.setLastDeadline()
	}
}

// close leaves a deadline for the end of the body, which the HTTP server writes after
// the handler. The server clears it before the connection's next request.
func (w *writer) close() {
	w.timer.Stop()
	w.setLastDeadline()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

type connKey struct{}

// ConnContext belongs into http.Server.ConnContext. It lets a stream bound the
// kernel's send buffer of its own connection and leave all others as they are.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// BoundSendBuffer sets the send buffer of the connection that r came over, so
// that a client that does not read is noticed before megabytes wait for it. On
// HTTP/2 it does nothing: many requests share the connection there, and each
// stream is bounded by the window that its client grants.
func BoundSendBuffer(r *http.Request, size int) {
	if r.ProtoMajor != 1 {
		return
	}
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if wrapper, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapper.NetConn()
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(int) error }); ok {
		// A refusal leaves the kernel's default: the stream works, it only
		// takes longer to notice that its client has stalled.
		_ = tcp.SetWriteBuffer(size)
	}
}
