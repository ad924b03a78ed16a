package sse

import (
	"errors"
	"fmt"
	"runtime/debug"

	r3labs "github.com/r3labs/sse/v2"
)

// pump moves events from the iterator to the hub, records the reason for which it
// ended, and ends the hub's handler. It runs on the goroutine that the hub starts for
// the subscriber.
func (st *Stream) pump() {
	defer close(st.pumped)
	st.mu.Lock()
	st.ended = false
	st.active.Store(int64(st.server.now()))
	st.mu.Unlock()

	st.reason = st.pull()
	if st.reason != nil {
		st.cancel(st.reason) // ends the producer's work under the context too
		st.publishLast()
	}
	st.mu.Lock()
	st.ended = true
	st.mu.Unlock()
	st.server.hub.Publish(st.id, &r3labs.Event{}) // the end, for the hub
}

// pull publishes the events of the iterator and returns the reason for which it
// stopped, nil for the iterator's own end.
func (st *Stream) pull() (reason error) {
	defer catch(&reason)
	for event, err := range st.events {
		if reason := st.endReason(); reason != nil {
			return reason
		}
		if err != nil {
			return err
		}
		if err := st.publish(event); err != nil {
			return err
		}
	}
	return st.endReason()
}

// publish hands one event to the hub as soon as there is room.
func (st *Stream) publish(event Event) error {
	size, err := st.measure(event)
	if err != nil {
		return err
	}
	for st.inFlight.Load() > 0 && st.inFlight.Load()+int64(size) > MaxInFlightBytes {
		select {
		case <-st.room:
		case <-st.ctx.Done():
			return st.endReason()
		}
	}
	st.send(event, size)
	return nil
}

// publishLast sends the dialect's last event behind everything before it. It
// does not wait for room: one event more is bounded as well.
func (st *Stream) publishLast() {
	if st.options.Last == nil || errors.Is(st.reason, ErrClientGone) {
		return
	}
	event, ok, err := st.lastEvent()
	if err != nil || !ok {
		return
	}
	if size, err := st.measure(event); err == nil {
		st.send(event, size)
	}
}

// lastEvent asks the dialect. The lock is the one under which heartbeats call
// it, so that its functions run one at a time.
func (st *Stream) lastEvent() (event Event, ok bool, err error) {
	defer catch(&err)
	st.mu.Lock()
	defer st.mu.Unlock()
	event, ok = st.options.Last(st.reason, st.last)
	return event, ok, nil
}

// measure returns the size of the event's block, or an error if it cannot be sent.
func (st *Stream) measure(event Event) (int, error) {
	if err := event.check(); err != nil {
		return 0, err
	}
	size := event.blockSize(st.options.IDs)
	if limit := st.server.options.MaxEventBytes; size > limit {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrEventTooLarge, size, limit)
	}
	return size, nil
}

// send publishes an event. A position for a client without ids is only recorded, as the
// position to resume from.
func (st *Stream) send(event Event, size int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.options.IDs || !event.isPosition() {
		st.inFlight.Add(int64(size))
		st.server.hub.Publish(st.id, event.library(st.options.IDs))
	}
	if event.ID != "" {
		st.last = event.ID
	}
}

// catch turns a panic into an error: the pump and the ticker are not goroutines of
// net/http, and a panic there would end the process.
func catch(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}
