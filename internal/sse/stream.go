package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is one response of Server-Sent Events. Server.Open makes it; one
// goroutine, that of the HTTP handler, calls its methods. Any goroutine may call Send.
type Stream struct {
	server  *Server
	options StreamOptions
	ctx     context.Context
	cancel  context.CancelCauseFunc
	state   atomic.Int32 // opened, serving or closed

	request  context.Context // that of the request; nil without one, or once detached from it
	unlink   func() bool     // lets the stream live on when the request has ended
	admitted func()          // release function of Options.Admit

	active atomic.Int64 // time of the last block, as Server.sinceStart; math.MaxInt64 before the first

	// mu is held while a block is written: events, heartbeats with their position, and the
	// last event. It guards last and out, which is nil while nothing can be written.
	mu   sync.Mutex
	last string // the ID last written
	out  *writer
}

const (
	stateOpened int32 = iota
	stateServing
	stateClosed
)

func newStream(ctx context.Context, s *Server, options StreamOptions) *Stream {
	options.Heartbeat = cmp.Or(options.Heartbeat, s.options.Heartbeat)
	st := &Stream{server: s, options: options, last: options.From}
	st.active.Store(math.MaxInt64)
	st.ctx, st.cancel = context.WithCancelCause(ctx)
	return st
}

// linkTo ends the stream with the context of its request, until it is detached from it.
func (st *Stream) linkTo(request context.Context) {
	st.request = request
	st.unlink = context.AfterFunc(request, func() { st.cancel(context.Cause(request)) })
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
// returns when the stream has ended. It pulls from events on the caller's
// goroutine, and pulls the next event when the one before is written.
//
// It returns nil if the iterator ended, else the reason: ErrClientGone,
// ErrSlowConsumer, ErrShutdown, a *PanicError, or the iterator's error. If that
// is a *Refused, nothing was written and the caller answers.
//
// Its frame stays on the stack for the lifetime of the stream.
func (st *Stream) Serve(w http.ResponseWriter, r *http.Request, events iter.Seq2[Event, error]) error {
	out, err := st.startServing(w, r)
	if err != nil {
		return err
	}
	defer st.release()
	defer out.close()
	// After any end of the context, the rest must be written soon.
	defer context.AfterFunc(st.ctx, out.setLastDeadline)()
	st.begin(out, w)
	return st.end(st.writeEvents(events))
}

// startServing returns the writer of a stream that can be served.
func (st *Stream) startServing(w http.ResponseWriter, r *http.Request) (out *writer, err error) {
	if !st.state.CompareAndSwap(stateOpened, stateServing) {
		return nil, &Refused{Reason: ErrUsed}
	}
	if reason := st.endReason(); reason != nil {
		err = st.server.refusedError(reason)
	} else if out, err = newWriter(st, w); err != nil {
		err = &Refused{Reason: err}
	}
	if err != nil {
		st.release()
		return nil, err
	}
	BoundSendBuffer(r, st.server.options.SendBuffer)
	return out, nil
}

// release ends the context and releases the place.
func (st *Stream) release() {
	st.releasePlace()
	st.server.removeStream(st)
}

// releasePlace ends the context and releases the place; Shutdown still waits for the stream.
func (st *Stream) releasePlace() {
	if st.unlink != nil {
		st.unlink()
	}
	st.cancel(nil)
	st.admitted()
}

// begin sends the header. From here on the stream has heartbeats.
func (st *Stream) begin(out *writer, w http.ResponseWriter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.out = out
	out.sendHeader(w)
	st.active.Store(int64(st.server.sinceStart()))
}

// writeEvents writes the events of the iterator and returns the reason for which it
// stopped, nil for the iterator's own end.
func (st *Stream) writeEvents(events iter.Seq2[Event, error]) (reason error) {
	defer recoverPanic(&reason)
	events(func(event Event, err error) bool {
		if reason = st.endReason(); reason == nil {
			if reason = err; reason == nil {
				reason = st.writeEvent(event)
			}
		}
		return reason == nil
	})
	if reason == nil {
		reason = st.endReason()
	}
	return reason
}

// writeEvent writes an event. A position for a client without ids is only recorded, as the
// position to resume from.
func (st *Stream) writeEvent(event Event) error {
	if err := st.checkEvent(event); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.writeLocked(event)
}

// Send writes an event beside those of the iterator. Any goroutine may call it while the iterator
// runs. Otherwise, and after the end of the context, it writes nothing and returns an error.
func (st *Stream) Send(event Event) error {
	if err := st.checkEvent(event); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if reason := st.endReason(); reason != nil {
		return reason
	}
	if st.out == nil {
		return ErrUsed
	}
	return st.writeLocked(event)
}

// writeLocked writes an event; st.mu is held.
func (st *Stream) writeLocked(event Event) error {
	if st.options.IDs || !event.isPosition() {
		if !st.out.sendBlock(event.toLibrary(st.options.IDs)) {
			return st.endReason()
		}
		st.active.Store(int64(st.server.sinceStart()))
	}
	if event.ID != "" {
		st.last = event.ID
	}
	return nil
}

// end writes the dialect's last event, if the stream ends before its iterator, and returns
// the reason. Nothing is written after it.
func (st *Stream) end(reason error) error {
	if reason != nil {
		st.cancel(reason) // ends the producer's work under the context too
		st.writeLast(reason)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if reason == nil && st.out.dead { // a heartbeat did not get out
		reason = st.endReason()
	}
	st.out = nil
	return reason
}

// writeLast writes the last event after everything before it.
func (st *Stream) writeLast(reason error) {
	if st.options.Last == nil || errors.Is(reason, ErrClientGone) {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	event, ok, err := st.lastEvent(reason)
	if err != nil || !ok || st.checkEvent(event) != nil {
		return
	}
	st.out.sendBlock(event.toLibrary(st.options.IDs))
}

// lastEvent asks the dialect. The caller holds the lock under which heartbeats call it, so
// that its functions run one at a time.
func (st *Stream) lastEvent(reason error) (event Event, ok bool, err error) {
	defer recoverPanic(&err)
	event, ok = st.options.Last(reason, st.last)
	return event, ok, nil
}

// checkEvent returns an error if the event cannot be sent.
func (st *Stream) checkEvent(event Event) error {
	if err := event.validate(); err != nil {
		return err
	}
	size, limit := event.blockSize(st.options.IDs), st.server.options.MaxEventBytes
	if size > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrEventTooLarge, size, limit)
	}
	return nil
}

// endReason returns the reason for which the stream must end, or nil.
func (st *Stream) endReason() error {
	if st.ctx.Err() == nil {
		if st.request == nil || st.request.Err() == nil {
			return nil
		}
		st.cancel(context.Cause(st.request)) // before linkTo did
	}
	if cause := context.Cause(st.ctx); cause != context.Canceled {
		return cause
	}
	return ErrClientGone
}

// isSilent reports whether the stream has been silent for its interval.
func (st *Stream) isSilent(now time.Duration) bool {
	return now-time.Duration(st.active.Load()) >= st.options.Heartbeat
}

// beatIfSilent sends a heartbeat if the stream has been silent for its interval. It does not
// wait for the client.
func (st *Stream) beatIfSilent(now time.Duration) {
	if !st.isSilent(now) || !st.mu.TryLock() { // a block is being written: no silence
		return
	}
	if st.out == nil || !st.isSilent(now) {
		st.mu.Unlock()
		return
	}
	st.active.Store(int64(now))
	go st.sendHeartbeat() // Serve waits for its lock
}

// sendHeartbeat sends a heartbeat and unlocks mu.
func (st *Stream) sendHeartbeat() {
	defer st.mu.Unlock()
	id, err := st.heartbeatID()
	if err != nil {
		st.cancel(err)
		return
	}
	beat := heartbeat
	if id != "" {
		beat = Event{ID: id}.toLibrary(true)
	}
	if st.out.sendBlock(beat) && id != "" {
		st.last = id
	}
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

// recoverPanic turns a panic into an error: a heartbeat's goroutine is not one of net/http,
// and a panic there would end the process.
func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}
