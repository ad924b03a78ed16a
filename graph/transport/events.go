package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// mode): an event `next` for each result, and `complete` at the end. GraphQL
// errors are sent in such a stream too, as the protocol requires: its clients
// treat any other answer as a network error and retry. A refusal that may
// succeed later therefore is an ordinary response.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request, req operation.Request, kind ast.Operation) {
	_, wantsIDs := r.Header[http.CanonicalHeaderKey("Last-Event-ID")]
	var f *feed
	var start, position string
	stream, err := h.streams.Open(r.Context(), sse.StreamOptions{
		IDs:      wantsIDs,
		Position: func(string) string { return h.positionToken(f.sentPosition()) },
		Last: func(reason error, last string) (sse.Event, bool) {
			position = cmp.Or(last, start)
			return lastEvent(reason, position)
		},
	})
	if err != nil {
		refuseStream(w, err)
		return
	}
	defer stream.Close()
	f, refused := h.resumeFeed(stream.Context(), r.Header.Get("Last-Event-ID"), req, kind)
	if isOverload(refused) {
		h.writeResult(w, formResponse, refused)
		return
	}
	served := false
	defer func() {
		if !served {
			f.close()
		}
	}()
	events := h.failureStream(refused)
	if f != nil {
		f.transport = transportEvents
		f.sendProgress = func(result *operation.Result) { _ = stream.Send(h.nextEvent(result, true)) } // a stream that fails ends
		// Inside a snapshot there is none: an interrupted snapshot can only be started again.
		start = h.positionToken(f.sentPosition())
		events = h.eventStream(stream.Context(), f)
	}
	ctx := context.WithoutCancel(r.Context()) // the request may end before the stream
	err = stream.ServeDetached(w, r, events, func(reason error) {
		f.close()
		h.reportEnd(ctx, reason, sse.End{Transport: transportEvents, Method: f.rootField(), Position: position})
	})
	if served = err == nil; !served {
		refuseStream(w, err)
	}
}

// The transports, for the operator (sse.End).
const (
	transportEvents = "graphql-sse"
	transportSocket = "graphql-ws"
)

// reportEnd reports the end of a stream or connection, if it is one of the server, and logs an
// internal error, of which the client is not told.
func (h *Handler) reportEnd(ctx context.Context, reason error, e sse.End) {
	if refused := (*sse.Refused)(nil); reason == nil || errors.Is(reason, sse.ErrClientGone) || errors.Is(reason, context.Canceled) || errors.As(reason, &refused) {
		return
	}
	if e.Reason, _ = endOf(reason); e.Reason == string(kg.CodeInternal) {
		if p := (*sse.PanicError)(nil); errors.As(reason, &p) {
			reason = fmt.Errorf("%w\n%s", reason, p.Stack)
		}
		h.engine.Present(reason) // it logs
	}
	h.streams.ReportEnd(ctx, e)
}

// resumeFeed begins the operation, after the last event that the client has seen
// if the client names one.
func (h *Handler) resumeFeed(ctx context.Context, last string, req operation.Request, kind ast.Operation) (*feed, *operation.Result) {
	if last != "" {
		after, err := h.positions.ParsePosition(last)
		if err != nil {
			return nil, &operation.Result{Errors: h.engine.Present(err)}
		}
		req.Resume = operation.Resume{Start: operation.After, After: after}
	}
	return h.beginFeed(ctx, req, kind)
}

// isOverload reports whether the same request may succeed later.
func isOverload(refused *operation.Result) bool {
	if refused == nil || len(refused.Errors) == 0 {
		return false
	}
	code := refused.Errors[0].Extensions["code"]
	return code == string(kg.CodeOverloaded) || code == string(kg.CodeRateLimited)
}

var completeEvent = sse.Event{Name: "complete"}

// eventStream is the event stream of an operation.
func (h *Handler) eventStream(ctx context.Context, f *feed) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for s, err := range f.allSteps(ctx) {
			if err != nil {
				yield(sse.Event{}, err)
				return
			}
			if !yield(h.nextEvent(&s.result, f.subscription != nil), nil) {
				return
			}
		}
		yield(completeEvent, nil)
	}
}

// failureStream is the event stream of a refused operation.
func (h *Handler) failureStream(refused *operation.Result) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		if yield(h.nextEvent(refused, false), nil) {
			yield(completeEvent, nil)
		}
	}
}

// nextEvent returns the event of a result. A resumable one has an id.
func (h *Handler) nextEvent(result *operation.Result, resumable bool) sse.Event {
	if isSharedResponse(result) {
		return h.encodeShared(result)
	}
	return h.encodeNext(result, resumable)
}

func (h *Handler) encodeNext(result *operation.Result, resumable bool) sse.Event {
	e := sse.Event{Name: "next", Data: h.appendResponse(nil, result)}
	if resumable {
		e.ID = h.positionToken(result.Position)
	}
	return e
}

// positionToken encodes a position, "" for the zero Position.
func (h *Handler) positionToken(at kg.Position) string {
	if at == (kg.Position{}) {
		return ""
	}
	return h.positions.FormatPosition(at)
}

// lastEvent returns the event that tells a client why the server ends its
// stream, and the position from which to resume. No `complete` follows: the
// operation goes on over another connection.
func lastEvent(reason error, last string) (sse.Event, bool) {
	code, message := endOf(reason)
	extensions := map[string]any{"code": code}
	if last != "" {
		extensions["position"] = last
	}
	b := appendErrors([]byte(`{"errors":`), gqlerror.List{{Message: message, Extensions: extensions}})
	return sse.Event{Name: "next", Data: append(b, '}')}, true
}

// endOf returns the code and the message for the reason of a stream's end.
func endOf(reason error) (code, message string) {
	var ended *kg.Error
	switch {
	case errors.As(reason, &ended) && (ended.Code == kg.CodeUnauthenticated || ended.Code == kg.CodePermissionDenied):
		return string(ended.Code), ended.Message
	case errors.Is(reason, sse.ErrSlowConsumer):
		return "SLOW_CONSUMER", "the events were not taken in time"
	case errors.Is(reason, sse.ErrShutdown):
		return "SERVER_SHUTDOWN", "the server is shutting down"
	case errors.Is(reason, sse.ErrEventTooLarge):
		return string(kg.CodeLimitExceeded), "an event is too large"
	}
	return string(kg.CodeInternal), "internal error"
}

// codeTooManyStreams is the code of a refusal at the limit of streams.
const codeTooManyStreams = "TOO_MANY_STREAMS"

// codeOfRefusal returns the code of a *sse.Refused.
func codeOfRefusal(err error) string {
	if errors.Is(err, sse.ErrTooManyStreams) {
		return codeTooManyStreams
	}
	return string(kg.CodeOf(err))
}

// presentRefused converts a *sse.Refused to the errors of an operation.
func (h *Handler) presentRefused(err error) gqlerror.List {
	if !errors.Is(err, sse.ErrTooManyStreams) {
		return h.engine.Present(errors.Unwrap(err))
	}
	return gqlerror.List{{Message: "too many streams are open", Extensions: map[string]any{
		"code": codeTooManyStreams, "retryAfterMs": sse.DefaultRetryAfter.Milliseconds(), "hint": "Close streams, or try again later."}}}
}

// refuseStream answers a request whose stream could not be started.
func refuseStream(w http.ResponseWriter, err error) {
	refused := (*sse.Refused)(nil)
	if !errors.As(err, &refused) {
		return // the stream was started and has ended with its last event
	}
	if refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter/time.Second)))
	}
	if limited := (*kg.Error)(nil); errors.As(err, &limited) && limited.Code == kg.CodeRateLimited {
		w.Header().Set("Retry-After", strconv.Itoa(int((limited.RetryAfter+time.Second-1)/time.Second)))
		writeRefusal(w, formJSON, http.StatusTooManyRequests, string(limited.Code), limited.Message)
		return
	}
	code, message := codeTooManyStreams, "too many streams are open"
	switch {
	case errors.Is(err, sse.ErrShutdown):
		code, message = "SERVER_SHUTDOWN", "the server is shutting down"
	case errors.Is(err, sse.ErrUnsupported):
		code, message = string(kg.CodeInternal), "this connection cannot stream"
	}
	writeRefusal(w, formJSON, http.StatusServiceUnavailable, code, message)
}
