package transport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// reservations are the streams of graphql-sse's single connection mode, from
// their reservation until their end. It is safe for concurrent use.
type reservations struct {
	handler *Handler

	mu      sync.Mutex // guards the fields below, and opened of all reservations
	byToken map[string]*reservation
	waiting *throttle.Pool // reservations without a stream, shared among callers
}

// reservation is a stream, or a reserved one. It has a slot among the streams
// from the beginning, so it is counted and shut down with them.
type reservation struct {
	handler    *Handler
	token      string
	owner      caller.Caller
	slot       *sse.Stream
	ctx        context.Context
	cancel     context.CancelCauseFunc
	operations *operations
	out        chan event // unbuffered: operations wait for their stream
	opened     bool
	expiry     *time.Timer // runs until the stream is opened
}

// event is an event of an operation on its way to the stream. It is dropped if
// the operation was stopped meanwhile.
type event struct {
	sse       sse.Event
	operation *running
	last      bool
}

func newReservations(h *Handler) *reservations {
	return &reservations{handler: h, byToken: map[string]*reservation{}, waiting: throttle.NewPool(int64(h.options.MaxReservations))}
}

// addReservation makes a reservation, which lives until its stream ends, or expires
// without one. The error is a *sse.Refused.
func (all *reservations) addReservation(ctx context.Context) (*reservation, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &reservation{
		handler: all.handler, token: rand.Text(), owner: caller.From(ctx), cancel: cancel, out: make(chan event),
		operations: newOperations(all.handler.options.MaxOperations),
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if !all.waiting.Acquire(throttle.OwnerOf(r.owner), 1) {
		cancel(nil)
		return nil, &sse.Refused{Reason: sse.ErrTooManyStreams, RetryAfter: sse.DefaultRetryAfter}
	}
	place, err := all.handler.streams.Open(ctx, sse.StreamOptions{})
	if err != nil {
		all.waiting.Release(throttle.OwnerOf(r.owner), 1)
		cancel(nil)
		return nil, err
	}
	r.slot, r.ctx = place, place.Context()
	r.expiry = time.AfterFunc(all.handler.options.ReserveTimeout, func() { all.expireUnopened(r) })
	all.byToken[r.token] = r
	go all.removeWhenDone(r)
	return r, nil
}

// removeWhenDone removes a reservation when its context is done, and waits for its
// operations.
func (all *reservations) removeWhenDone(r *reservation) {
	<-r.ctx.Done()
	all.mu.Lock()
	opened := r.opened
	all.remove(r)
	all.mu.Unlock()
	r.operations.waitAll()
	if !opened {
		r.slot.Close()
	}
}

// remove must be called with all.mu held.
func (all *reservations) remove(r *reservation) {
	r.expiry.Stop()
	if all.byToken[r.token] == r {
		delete(all.byToken, r.token)
		if !r.opened {
			all.waiting.Release(throttle.OwnerOf(r.owner), 1)
		}
	}
}

func (all *reservations) expireUnopened(r *reservation) {
	all.mu.Lock()
	opened := r.opened
	all.mu.Unlock()
	if !opened {
		r.cancel(nil)
	}
}

func (all *reservations) get(token string) *reservation {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byToken[token]
}

// isOf reports whether the caller has exactly the rights of the reservation's
// owner, with any credential: operations run with the owner's rights.
func (r *reservation) isOf(c caller.Caller) bool {
	a, b := &r.owner.Principal, &c.Principal
	return a.ID == b.ID && r.owner.Acting() == c.Acting() && slices.Equal(a.Roles, b.Roles) && slices.Equal(a.ActFor, b.ActFor)
}

// open reports whether the caller gets to serve the reservation's stream. It
// succeeds once.
func (all *reservations) open(r *reservation) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r.opened || all.byToken[r.token] != r {
		return false
	}
	r.opened = true
	r.expiry.Stop()
	all.waiting.Release(throttle.OwnerOf(r.owner), 1)
	return true
}

// serveStream writes the stream of an opened reservation.
func (r *reservation) serveStream(w http.ResponseWriter, req *http.Request) error {
	defer context.AfterFunc(req.Context(), func() { r.cancel(context.Cause(req.Context())) })()
	defer r.operations.waitAll()
	defer r.cancel(nil)
	return r.slot.Serve(w, req, r.eventStream())
}

// eventStream yields the events of all operations as they come.
func (r *reservation) eventStream() iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for {
			select {
			case e := <-r.out:
				if r.operations.maySend(e.operation, e.last) && !yield(e.sse, nil) {
					return
				}
			case <-r.ctx.Done():
				yield(sse.Event{}, context.Cause(r.ctx))
				return
			}
		}
	}
}

// playFeed sends the steps of an operation to the stream.
func (r *reservation) playFeed(op *running, f *feed) {
	defer r.operations.endOperation(op)
	defer f.close()
	f.sendProgress = func(result *operation.Result) { r.sendResult(op, result) }
	for s, err := range f.allSteps(op.ctx) {
		if err != nil { // the operation was stopped, or the reservation ended
			return
		}
		fits, sent := r.sendResult(op, &s.result)
		if !sent {
			return
		}
		if s.failed || !fits {
			break
		}
	}
	r.send(op, "complete", nil, true)
}

// sendResult sends a result, or an error in its place if its event would be too large.
func (r *reservation) sendResult(op *running, result *operation.Result) (fits, sent bool) {
	payload := r.handler.appendResponse(nil, result)
	fits = len(payload)+maxEnvelope <= r.handler.streams.MaxEventBytes()
	if !fits {
		// The original would end the stream for all operations.
		payload = append(appendErrors([]byte(`{"errors":`), eventTooLarge()), '}')
	}
	return fits, r.send(op, "next", payload, false)
}

func (r *reservation) send(op *running, name string, payload json.RawMessage, last bool) bool {
	data, err := json.Marshal(op.id)
	if err != nil {
		panic(err) // strings always encode
	}
	data = append([]byte(`{"id":`), data...)
	if payload != nil {
		data = append(append(data, `,"payload":`...), payload...)
	}
	select {
	case r.out <- event{sse.Event{Name: name, Data: append(data, '}')}, op, last}:
		return true
	case <-op.ctx.Done():
		return false
	}
}

// maxEnvelope bounds the bytes around a payload: an id in which each byte is
// escaped, and the fields of the event.
const maxEnvelope = 6*MaxOperationID + 100

func eventTooLarge() gqlerror.List {
	return gqlerror.List{{Message: "an event is too large", Extensions: map[string]any{
		"code": string(kg.CodeLimitExceeded), "limit": "eventBytes", "hint": "Select fewer fields."}}}
}
