package sse

import (
	"context"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// lingerTime is how long a connection waits for its client after the end of a stream. To
	// close it at once could lose the last event, if the client has sent something meanwhile.
	lingerTime = 500 * time.Millisecond
	// MaxDiscardedBytes bounds the bytes that the client of a detached stream may send on. They
	// are not read as a request: the stream ends its connection.
	MaxDiscardedBytes = 64 << 10
)

// Detacher is an answer that may go on when its handler has returned.
type Detacher interface {
	// Detach takes the connection from net/http, after the header of a chunked answer. If it
	// returns no error, the request ends when ended is called and its handler has
	// returned; ended is told the bytes of the body and, if the end of the stream
	// panicked, the panic.
	Detach() (conn net.Conn, ended func(bytes int64, failure error), err error)
}

// ServeDetached is Serve for a handler that returns while its stream is open, so that an idle
// stream holds neither the stack of the handler nor the buffers of net/http. A stream
// over HTTP/1.1 with a Detacher for its answer goes on by itself on its connection, which
// ends with it. Any other is served until its end, as Serve does.
//
// The error is a *Refused: nothing was written, and the caller answers. Otherwise ended is
// called once, with the result of Serve, at the end of the stream and possibly before
// ServeDetached returns. All that the handler would do after Serve belongs there; it must
// not refer to the request or its answer. The context of the request ends with the
// handler: context.WithoutCancel keeps its values. A credential ends the stream as before,
// if the context that it ends is of WithEnd.
func (st *Stream) ServeDetached(w http.ResponseWriter, r *http.Request, events iter.Seq2[Event, error], ended func(error)) error {
	owner := st.detacherOf(w, r)
	if owner == nil {
		reason := st.Serve(w, r, events)
		if _, refused := reason.(*Refused); refused {
			return reason
		}
		ended(reason)
		return nil
	}
	out, err := st.startServing(w, r)
	if err != nil {
		return err
	}
	d := &detached{stream: st, out: out, events: events, ended: ended}
	d.stopDeadline = context.AfterFunc(st.ctx, out.setLastDeadline)
	w.Header().Set("Connection", "close")
	st.begin(out, w)
	if d.conn, d.finish, err = owner.Detach(); err != nil {
		d.finish = func(int64, error) {}
		d.serveToEnd() // net/http writes the rest
		return nil
	}
	st.followEndings()
	st.unlink()
	out.takeConn(d.conn)
	go d.watchClient()
	go d.serveToEnd()
	return nil
}

// detacherOf returns the answer if the stream can be detached from it, or nil. A deadline of the
// request ends a stream through its context only.
func (st *Stream) detacherOf(w http.ResponseWriter, r *http.Request) Detacher {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Method == http.MethodHead || st.request == nil {
		return nil
	}
	if _, limited := st.request.Deadline(); limited {
		return nil
	}
	for {
		switch inner := w.(type) {
		case Detacher:
			return inner
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return nil
		}
	}
}

// detached is a stream on a connection of its own.
type detached struct {
	stream       *Stream
	out          *writer
	conn         net.Conn // nil if net/http kept it
	events       iter.Seq2[Event, error]
	ended        func(error)
	finish       func(int64, error) // of the request
	stopDeadline func() bool
}

// serveToEnd serves the stream to its end. Shutdown waits for it.
func (d *detached) serveToEnd() {
	st := d.stream
	defer st.server.removeStream(st)
	reason := st.end(st.writeEvents(d.events))
	d.stopDeadline()
	d.out.close()
	st.releasePlace()
	failure := d.tellEnd(reason)
	d.finish(d.out.direct.Written(), failure)
	if d.conn != nil {
		d.hangUp()
	}
}

func (d *detached) tellEnd(reason error) (failure error) {
	defer recoverPanic(&failure)
	d.ended(reason)
	return nil
}

// hangUp ends the body. watchClient closes the connection when the client has it, or soon.
func (d *detached) hangUp() {
	wait := time.Now()
	if !d.out.dead && d.out.direct.Close() == nil {
		if half, ok := d.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // a failure means that the client is gone
			wait = wait.Add(lingerTime)
		}
	}
	_ = d.conn.SetReadDeadline(wait)
}

// watchClient ends the stream when its client leaves, and closes the connection.
func (d *detached) watchClient() {
	defer d.conn.Close()
	defer d.stream.cancel(nil)
	buffer := make([]byte, 64)
	for discarded := 0; discarded < MaxDiscardedBytes; {
		n, err := d.conn.Read(buffer)
		if err != nil {
			return
		}
		discarded += n
	}
}

// ending ends a request for a cause of its own, beside the end of its connection.
type ending struct {
	outer *ending // that of the context around it, or nil

	mu     sync.Mutex // guards the fields below
	ended  bool
	cause  error
	stream func(error) // ends the stream that has been detached; nil before
}

type endingKey struct{}

// WithEnd is context.WithCancelCause for the context of a request: end also ends a stream
// that was opened under the context and has been detached from its request since.
func WithEnd(ctx context.Context) (inner context.Context, end context.CancelCauseFunc) {
	outer, _ := ctx.Value(endingKey{}).(*ending)
	e := &ending{outer: outer}
	inner, cancel := context.WithCancelCause(ctx)
	return context.WithValue(inner, endingKey{}, e), func(cause error) {
		cancel(cause)
		if end := e.setEnd(cause); end != nil {
			end(cause)
		}
	}
}

// setEnd records the end and returns the function that ends the stream, or nil.
func (e *ending) setEnd(cause error) func(error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return nil
	}
	e.ended, e.cause = true, cause
	return e.stream
}

// followEndings ends the stream with the contexts of WithEnd around it.
func (st *Stream) followEndings() {
	e, _ := st.request.Value(endingKey{}).(*ending)
	for ; e != nil; e = e.outer {
		e.mu.Lock()
		e.stream = st.cancel
		ended, cause := e.ended, e.cause
		e.mu.Unlock()
		if ended {
			st.cancel(cause)
		}
	}
}
