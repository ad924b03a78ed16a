package graph

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// serveEvents answers with an event stream (graphql-sse, distinct connections
// mode): each result an event `next`, and `complete` at the end. What is
// refused is refused with an ordinary response, before the first byte.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request, req operation.Request, kind ast.Operation) {
	_, wantsIDs := r.Header[http.CanonicalHeaderKey("Last-Event-ID")]
	var f feed
	stream, err := h.streams.Open(r.Context(), sse.StreamOptions{
		IDs:      wantsIDs,
		Position: func(string) string { return f.position(h) },
		Last:     h.lastEvent,
	})
	if err != nil {
		h.refuseStream(w, err)
		return
	}
	defer stream.Close()
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		after, err := h.engine.deps.Store.ParsePosition(last)
		if err != nil {
			h.refuseResult(w, h.engine.present(err))
			return
		}
		req.Resume = operation.Resume{Start: operation.After, After: after}
	}
	events, ok := h.open(stream.Context(), w, req, kind, &f)
	if !ok {
		return
	}
	defer f.close()
	if err := stream.Serve(w, r, events); err != nil {
		h.refuseStream(w, err)
	}
}

// feed is the subscription of a stream; it has none while a query is streamed.
type feed struct {
	stream *Stream
	stop   context.CancelFunc // ends the subscription's context
}

// position is up to where all events have been sent; "" when there is no
// saying. An event counts once the next is asked for, so one that is on its way
// does not yet.
func (f *feed) position(h *Handler) string {
	if f.stream == nil {
		return ""
	}
	at := f.stream.Position()
	if at == (kg.Position{}) {
		return ""
	}
	return h.engine.deps.Store.FormatPosition(at)
}

func (f *feed) close() {
	if f.stream != nil {
		f.stop()
		f.stream.Close()
	}
}

// open establishes what is streamed. When it may not be, it answers and says
// false.
func (h *Handler) open(ctx context.Context, w http.ResponseWriter, req operation.Request, kind ast.Operation, f *feed) (iter.Seq2[sse.Event, error], bool) {
	if kind != ast.Subscription {
		result := h.engine.Execute(ctx, req)
		if result.Data == nil && len(result.Errors) > 0 {
			h.refuseResult(w, result.Errors)
			return nil, false
		}
		return h.once(&result), true
	}
	ctx, stop := context.WithCancel(ctx)
	stream, err := h.engine.subscribe(ctx, req)
	if err != nil {
		stop()
		invalid := (*operation.InvalidError)(nil)
		if errors.As(err, &invalid) {
			h.refuseResult(w, invalid.Errors)
		} else {
			h.refuseResult(w, h.engine.present(err))
		}
		return nil, false
	}
	f.stream, f.stop = stream, stop
	return h.follow(ctx, f), true
}

// once is the stream of a query or mutation.
func (h *Handler) once(result *operation.Result) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		if yield(sse.Event{Name: "next", Data: h.appendResponse(nil, result)}, nil) {
			yield(completeEvent, nil)
		}
	}
}

var completeEvent = sse.Event{Name: "complete"}

func (h *Handler) next(result *operation.Result) sse.Event {
	e := sse.Event{Name: "next", Data: h.appendResponse(nil, result)}
	if result.Position != (kg.Position{}) {
		e.ID = h.engine.deps.Store.FormatPosition(result.Position)
	}
	return e
}

// follow is the stream of a subscription. While nothing matches it tells now
// and then the position scanned to, so that a client that comes back after a
// long time need not start anew.
func (h *Handler) follow(ctx context.Context, f *feed) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		s := f.stream
		events, wait := pull(ctx, s.Events())
		defer wait()
		defer f.stop() // before the wait: the log may have nothing to say
		ticker := time.NewTicker(h.options.UpToDateEvery)
		defer ticker.Stop()
		told := s.Position()
		for {
			select {
			case e, ok := <-events:
				if !ok {
					return
				}
				if e.err != nil {
					h.end(s, e.err, yield)
					return
				}
				if !yield(h.next(&e.event.Result), nil) {
					return
				}
				told = e.event.Position
				close(e.sent)
				ticker.Reset(h.options.UpToDateEvery)
			case <-ticker.C:
				if at := s.Position(); at.Compare(told) > 0 {
					told = at
					e := s.UpToDate()
					if !yield(h.next(&e.Result), nil) {
						return
					}
				}
			}
		}
	}
}

// pulled is an element of a sequence that is read on another goroutine.
type pulled struct {
	event operation.Event
	err   error
	sent  chan struct{} // to be closed when the event is out
}

// pull reads the sequence on a goroutine of its own, and asks for an element
// when the one before is out. It ends with ctx; wait waits for that.
func pull(ctx context.Context, seq iter.Seq2[operation.Event, error]) (events <-chan pulled, wait func()) {
	out := make(chan pulled)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		for e, err := range seq {
			p := pulled{e, err, make(chan struct{})}
			select {
			case out <- p:
			case <-ctx.Done():
				return
			}
			select {
			case <-p.sent:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { <-done }
}

// end tells why a subscription cannot go on. With Resync it is complete; any
// other end is an error, after which a client may come back.
func (h *Handler) end(s *Stream, err error, yield func(sse.Event, error) bool) {
	known := kg.AsError(err)
	switch {
	case s.ctx.Err() != nil: // the stream itself is ending and says why
		yield(sse.Event{}, err)
	case known.Code == kg.CodeResync:
		result := s.Resync(known)
		if yield(h.next(&result), nil) {
			yield(completeEvent, nil)
		}
	default:
		result := operation.Result{Errors: h.engine.present(err)}
		if yield(h.next(&result), nil) {
			yield(completeEvent, nil)
		}
	}
}

// lastEvent tells a client why the server ends its stream, and from where to
// resume. No `complete` follows: there is more to come, on another connection.
func (h *Handler) lastEvent(reason error, last string) (sse.Event, bool) {
	code, message := string(kg.CodeInternal), "internal error"
	switch {
	case errors.Is(reason, sse.ErrSlowConsumer):
		code, message = "SLOW_CONSUMER", "the events were not taken in time"
	case errors.Is(reason, sse.ErrShutdown):
		code, message = "SERVER_SHUTDOWN", "the server is shutting down"
	case errors.Is(reason, sse.ErrEventTooLarge):
		code, message = string(kg.CodeLimitExceeded), "an event is too large"
	}
	extensions := map[string]any{"code": code}
	if last != "" {
		extensions["position"] = last
	}
	b := appendErrors([]byte(`{"errors":`), gqlerror.List{{Message: message, Extensions: extensions}})
	return sse.Event{Name: "next", Data: append(b, '}')}, true
}

// refuseStream answers when no stream could be begun.
func (h *Handler) refuseStream(w http.ResponseWriter, err error) {
	refused := (*sse.Refused)(nil)
	if !errors.As(err, &refused) {
		return // the stream was begun, and has ended with its last event
	}
	if refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter/time.Second)))
	}
	code, message := "TOO_MANY_STREAMS", "there are too many streams"
	switch {
	case errors.Is(err, sse.ErrShutdown):
		code, message = "SERVER_SHUTDOWN", "the server is shutting down"
	case errors.Is(err, sse.ErrUnsupported):
		code, message = string(kg.CodeInternal), "this connection cannot stream"
	}
	refuse(w, formJSON, http.StatusServiceUnavailable, code, message)
}

// refuseResult answers a stream's request that was refused in GraphQL's terms.
// It is never 200: a client would take the body for a stream.
func (h *Handler) refuseResult(w http.ResponseWriter, errs gqlerror.List) {
	h.writeResult(w, formResponse, operation.Result{Errors: errs})
}
