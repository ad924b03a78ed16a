package sse

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// writer stands between the hub and the client's response. The hub writes a
// block line by line and then flushes, ignoring errors. The writer gathers the
// lines, and at the flush sends the block as a whole, under a deadline.
//
// Only the handler's goroutine writes. setLastDeadline may be called from any.
type writer struct {
	stream *Stream
	out    http.ResponseWriter
	rc     *http.ResponseController
	block  *block // nil between blocks
	dead   bool   // a write failed; later blocks are dropped

	// A timer watches each block, in place of a deadline set and cleared on the
	// connection per block: on HTTP/2 a deadline that is left standing ends an
	// idle stream, and setting one costs a message to the connection's loop.
	timer *time.Timer

	mu      sync.Mutex // guards the fields below and all use of the deadline
	writing bool
	began   time.Duration // when the block was begun, as Server.sinceStart
	hurried bool          // the deadline of the end is set
	closed  bool          // the handler has returned: rc must not be used
}

// block is one block of the stream while it is gathered.
type block struct {
	bytes []byte
	name  int // index for the event's name: after the id
}

// blocks recycles them, so that an idle stream holds none.
var blocks = sync.Pool{New: func() any { return new(block) }}

// maxPooledBlock is the largest buffer worth keeping.
const maxPooledBlock = 64 << 10

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
	wr := &writer{stream: st, out: w, rc: rc}
	wr.timer = time.AfterFunc(st.server.options.WriteTimeout, wr.checkTimeout)
	wr.timer.Stop()
	return wr, nil
}

// Header returns the header of the response.
func (w *writer) Header() http.Header { return w.out.Header() }

// WriteHeader sends the status; the next flush sends it off. The hub's
// "Connection" header has no place in HTTP/2 and no meaning in HTTP/1.1.
func (w *writer) WriteHeader(status int) {
	w.out.Header().Del("Connection")
	w.out.WriteHeader(status)
}

// Write gathers one line of a block. It drops an id line that was not requested or is
// empty, puts the event's name before its data (clients that read line by line need it
// there), and removes the comment mark (Event.toLibrary).
func (w *writer) Write(line []byte) (int, error) {
	if w.block == nil {
		w.block = blocks.Get().(*block)
	}
	b := w.block
	switch {
	case bytes.HasPrefix(line, []byte("id: ")):
		if w.stream.options.IDs && len(line) > len("id: \n") {
			b.bytes = append(b.bytes, line...)
			b.name = len(b.bytes)
		}
	case bytes.HasPrefix(line, []byte("event: ")):
		b.bytes = slices.Insert(b.bytes, b.name, line...)
	case bytes.HasPrefix(line, []byte(": ")):
		b.bytes = append(b.bytes, line[len(": "):]...)
	default:
		b.bytes = append(b.bytes, line...)
	}
	return len(line), nil
}

// Flush sends the gathered block, or the header if there is none.
func (w *writer) Flush() {
	var lines []byte
	if w.block != nil {
		lines = w.block.bytes
	}
	if !w.dead {
		w.sendBlock(lines)
	}
	w.stream.blockWritten(len(lines))
	if cap(lines) > 0 && cap(lines) <= maxPooledBlock {
		*w.block = block{bytes: lines[:0]}
		blocks.Put(w.block)
	}
	w.block = nil
}

func (w *writer) sendBlock(lines []byte) {
	w.startTimer()
	var err error
	if len(lines) > 0 {
		_, err = w.out.Write(lines)
	}
	if err == nil {
		err = w.rc.Flush()
	}
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
	_ = w.rc.SetWriteDeadline(deadline)
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
