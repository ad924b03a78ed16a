package sse

import (
	"errors"
	"fmt"
	"runtime/debug"

	r3labs "github.com/r3labs/sse/v2"
)

// runPump moves events from the iterator to the hub, records the reason for which it
// ended, and ends the hub's handler. It runs on the goroutine that the hub starts for
// the subscriber.
func (st *Stream) runPump() {
	defer close(st.pumped)
	st.mu.Lock()
	st.ended = false
	st.active.Store(int64(st.server.sinceStart()))
	st.mu.Unlock()

	st.reason = st.pullEvents()
	if st.reason != nil {
		st.cancel(st.reason) // ends the producer's work under the context too
		st.publishLast()
	}
	st.mu.Lock()
	st.ended = true
	st.mu.Unlock()
	st.server.hub.Publish(st.id, &r3labs.Event{}) // the end, for the hub
}

// pullEvents publishes the events of the iterator and returns the reason for which it
// stopped, nil for the iterator's own end.
func (st *Stream) pullEvents() (reason error) {
	defer recoverPanic(&reason)
	for event, err := range st.events {
		if reason := st.endReason(); reason != nil {
			return reason
		}
		if err != nil {
			return err
		}
		if err := st.publishEvent(event); err != nil {
			return err
		}
	}
	return st.endReason()
}

// publishEvent hands one event to the hub as soon as there is room.
func (st *Stream) publishEvent(event Event) error {
	size, err := st.measureEvent(event)
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
	st.sendEvent(event, size)
	return nil
}

// publishLast sends the dialect's last event after everything before it. It
// does not wait for room: one event more is bounded as well.
func (st *Stream) publishLast() {
	if st.options.Last == nil || errors.Is(st.reason, ErrClientGone) {
		return
	}
	event, ok, err := st.lastEvent()
	if err != nil || !ok {
		return
	}
	if size, err := st.measureEvent(event); err == nil {
		st.sendEvent(event, size)
	}
}

// lastEvent asks the dialect. The lock is the one under which heartbeats call
// it, so that its functions run one at a time.
func (st *Stream) lastEvent() (event Event, ok bool, err error) {
	defer recoverPanic(&err)
	st.mu.Lock()
	defer st.mu.Unlock()
	event, ok = st.options.Last(st.reason, st.last)
	return event, ok, nil
}

// measureEvent returns the size of the event's block, or an error if it cannot be sent.
func (st *Stream) measureEvent(event Event) (int, error) {
	if err := event.validate(); err != nil {
		return 0, err
	}
	size := event.blockSize(st.options.IDs)
	if limit := st.server.options.MaxEventBytes; size > limit {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrEventTooLarge, size, limit)
	}
	return size, nil
}

// sendEvent publishes an event. A position for a client without ids is only recorded, as the
// position to resume from.
func (st *Stream) sendEvent(event Event, size int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.options.IDs || !event.isPosition() {
		st.inFlight.Add(int64(size))
		st.server.hub.Publish(st.id, event.toLibrary(st.options.IDs))
	}
	if event.ID != "" {
		st.last = event.ID
	}
}

// recoverPanic turns a panic into an error: the pump and the ticker are not goroutines of
// net/http, and a panic there would end the process.
func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}
