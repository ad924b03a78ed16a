package sse

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is one response of Server-Sent Events. Server.Open makes it; one
// goroutine, that of the HTTP handler, calls its methods.
type Stream struct {
	server  *Server
	id      string // its name in the hub
	options StreamOptions
	ctx     context.Context
	cancel  context.CancelCauseFunc
	events  iter.Seq2[Event, error]
	state   atomic.Int32 // opened, serving or closed

	admitted func() // release function of Options.Admit

	active   atomic.Int64  // time of the last block or heartbeat, as Server.sinceStart
	inFlight atomic.Int64  // bytes published and not yet written
	room     chan struct{} // a token when inFlight has become smaller
	pumped   chan struct{} // closed when the pump has ended
	left     chan struct{} // closed when the hub has removed the subscriber
	reason   error         // the reason for the pump's end; read after pumped

	// mu orders the published blocks: events, heartbeats with their position, and the
	// end. It guards last and ended.
	mu    sync.Mutex
	last  string // the ID last published
	ended bool   // nothing is published any more (or not yet)
}

const (
	stateOpened int32 = iota
	stateServing
	stateClosed
)

func newStream(ctx context.Context, s *Server, id string, options StreamOptions) *Stream {
	options.Heartbeat = cmp.Or(options.Heartbeat, s.options.Heartbeat)
	st := &Stream{
		server:  s,
		id:      id,
		options: options,
		room:    make(chan struct{}, 1),
		pumped:  make(chan struct{}),
		left:    make(chan struct{}),
		last:    options.From,
		ended:   true, // until the pump starts
	}
	st.ctx, st.cancel = context.WithCancelCause(ctx)
	return st
}

// Context ends when the client goes away, cannot follow, or the server shuts
// down, and at the latest when Serve returns. The producer of the events must
// work under it and end soon after it.
func (st *Stream) Context() context.Context { return st.ctx }

// Close releases the place of a stream that was not served, and does nothing otherwise.
func (st *Stream) Close() {
	if st.state.CompareAndSwap(stateOpened, stateClosed) {
		st.release()
	}
}

// Serve answers 200 text/event-stream, writes each event as it comes, and
// returns when the stream has ended. It pulls from events on another goroutine,
// one event at a time.
//
// It returns nil if the iterator ended, else the reason: ErrClientGone,
// ErrSlowConsumer, ErrShutdown, a *PanicError, or the iterator's error. If that
// is a *Refused, nothing was written and the caller answers.
func (st *Stream) Serve(w http.ResponseWriter, r *http.Request, events iter.Seq2[Event, error]) error {
	if !st.state.CompareAndSwap(stateOpened, stateServing) {
		return &Refused{Reason: ErrUsed}
	}
	defer st.release()
	if reason := st.endReason(); reason != nil {
		return st.server.refusedError(reason)
	}
	out, err := newWriter(st, w)
	if err != nil {
		return &Refused{Reason: err}
	}
	BoundSendBuffer(r, st.server.options.SendBuffer)
	st.events = events
	defer out.close()
	// After any end of the context, the rest must be written soon.
	defer context.AfterFunc(st.ctx, out.setLastDeadline)()
	st.serveHub(out)
	if st.reason == nil && out.dead { // the iterator's end did not get out
		return st.endReason()
	}
	return st.reason
}

// release ends the context and releases the place.
func (st *Stream) release() {
	st.cancel(nil)
	st.server.removeStream(st.id)
	st.admitted()
}

// serveHub lets the hub write to out until the pump has ended. The request that
// the hub sees has no context of the client's: the subscriber must not leave
// while the pump publishes, or the hub's loop would wait for it for ever.
func (st *Stream) serveHub(out *writer) {
	hub := st.server.hub
	subscribed, leave := context.WithCancel(context.Background())
	hub.CreateStream(st.id)
	hub.ServeHTTP(out, st.hubRequest(subscribed))
	leave()
	<-st.pumped
	<-st.left
	hub.RemoveStream(st.id)
}

// It is not inlined: the stream's goroutine waits above it, and its stack would hold a
// request for all that time.
//
//go:noinline
func (st *Stream) hubRequest(ctx context.Context) *http.Request {
	request := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{RawQuery: "stream=" + st.id},
		Header: http.Header{},
	}
	return request.WithContext(ctx)
}

// endReason returns the reason for which the stream must end, or nil.
func (st *Stream) endReason() error {
	if st.ctx.Err() == nil {
		return nil
	}
	if cause := context.Cause(st.ctx); cause != context.Canceled {
		return cause
	}
	return ErrClientGone
}

// blockWritten accounts for a block that left for the socket, or was dropped because
// the client is gone.
func (st *Stream) blockWritten(size int) {
	st.active.Store(int64(st.server.sinceStart()))
	st.inFlight.Add(-int64(size))
	select {
	case st.room <- struct{}{}:
	default:
	}
}

// sendHeartbeat sends a heartbeat if the stream has been silent for its interval.
func (st *Stream) sendHeartbeat(now time.Duration) {
	if now-time.Duration(st.active.Load()) < st.options.Heartbeat || st.inFlight.Load() > 0 {
		return
	}
	if !st.mu.TryLock() { // the pump publishes: no silence
		return
	}
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	id, err := st.heartbeatID()
	if err != nil {
		st.cancel(err)
		return
	}
	beat, size := heartbeat, heartbeatSize
	if event := (Event{ID: id}); id != "" {
		beat, size = event.toLibrary(true), event.blockSize(true)
	}
	st.inFlight.Add(int64(size))
	if !st.server.hub.TryPublish(st.id, beat) {
		st.inFlight.Add(-int64(size))
		return
	}
	if id != "" {
		st.last = id
	}
	st.active.Store(int64(now))
}

// heartbeatID returns the position of the dialect's scan; "" stands for a comment.
func (st *Stream) heartbeatID() (id string, err error) {
	if !st.options.IDs || st.options.Position == nil {
		return "", nil
	}
	defer recoverPanic(&err)
	id = st.options.Position(st.last)
	if id == "" {
		return "", nil
	}
	return id, Event{ID: id}.validate()
}
