package a2a

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// opening is a valid request for a stream that is not established yet.
type opening struct {
	of        family
	transport string // for the operator, with the method (sse.End)
	method    string
	write     *framing  // the encoding of its events
	began     time.Time // when it was established
	// heartbeat replaces the server's interval; 0 keeps it.
	heartbeat time.Duration
	// ids reports whether the client requested id lines.
	ids bool
	// establish validates, authorises and registers, under a context that ends with the
	// stream.
	establish func(context.Context) (*feed, error)

	end      *Error // the last event, once the server has ended the stream
	position string // the position of that event
}

// endCode returns the code of the error with which the stream ended, 0 for none.
func (o *opening) endCode() int {
	if o.end == nil {
		return 0
	}
	return o.end.Code
}

// feed is an established stream.
type feed struct {
	// results end with the error that ends the stream.
	results iter.Seq2[result, error]
	// start is the position after which the stream starts, as a token, or "".
	start string
	// position returns the position up to which everything was yielded, as a token, or
	// "" if unknown. It may be called from any goroutine.
	position func() string
	close    func()
}

// tellStart makes the stream begin with an event of its position, if known: otherwise a
// client that is cut off before the first event would reconnect at a later start.
func (f *feed) tellStart() {
	if f.start == "" {
		return
	}
	results := f.results
	f.results = func(yield func(result, error) bool) {
		if yield(result{position: f.start}, nil) {
			results(yield)
		}
	}
}

// result is one element of a stream.
type result struct {
	value    any    // nil: the position only
	position string // position to resume from after it, as a token, or ""
}

// framing encodes the events of a stream for a protocol.
type framing struct {
	// result appends the encoding of a result.
	result func(to []byte, value any) ([]byte, error)
	// last encodes the reason for which the stream ends.
	last func(*Error) (sse.Event, error)
}

// serveStream establishes the stream and serves it, possibly beyond its return: ended is called
// at the end of the stream, with the code of the error with which it ended, 0 for none. An
// error means that nothing was written, ended is not called and the caller answers
// (docs/reference/json-rpc.md).
//
// Where the handler waits for the stream (HTTP/2), its frame stays on the stack meanwhile, so
// everything that needs much stack is in functions of its own.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, o *opening, ended func(code int)) error {
	st, f, err := h.establishStream(r.Context(), o)
	if err != nil {
		return err
	}
	o.began = time.Now()
	ctx := context.WithoutCancel(r.Context()) // the request may end before the stream
	err = st.ServeDetached(w, r, frameResults(f.results, o.write), func(reason error) {
		defer func() { ended(o.endCode()) }()
		f.close()
		h.streamEnded(ctx, o, reason)
	})
	if err != nil {
		f.close()
		return streamRefusal(o.of, err)
	}
	return nil
}

// establishStream opens the stream. Unless it fails, the stream must be served and the feed
// closed.
func (h *Handler) establishStream(ctx context.Context, o *opening) (*sse.Stream, *feed, error) {
	var f *feed
	values := context.WithoutCancel(ctx) // the request may end before the stream
	st, err := h.streams.Open(ctx, sse.StreamOptions{
		Heartbeat: o.heartbeat,
		IDs:       o.ids,
		Position:  func(string) string { return f.position() },
		Last: func(reason error, position string) (sse.Event, bool) {
			o.position = cmp.Or(position, f.start)
			o.end = h.endOf(values, o.of, reason, o.position)
			event, err := o.write.last(o.end)
			return event, err == nil
		},
	})
	if err != nil {
		return nil, nil, streamRefusal(o.of, err)
	}
	establish := o.establish
	o.establish = nil // an open stream does not hold the request
	if f, err = callRecovered(func() (*feed, error) { return establish(st.Context()) }); err != nil {
		st.Close()
		return nil, nil, err
	}
	return st, f, nil
}

// frameResults encodes the results as events.
func frameResults(results iter.Seq2[result, error], write *framing) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for out, err := range results {
			if !frameResult(&out, err, write, yield) {
				return
			}
		}
	}
}

// frameResult yields a result as an event, and reports whether to continue. Its buffer is kept
// for the time of the call only, so that a stream that waits holds none.
func frameResult(out *result, err error, write *framing, yield func(sse.Event, error) bool) bool {
	event := sse.Event{ID: out.position}
	if err == nil && out.value != nil {
		buffer := frames.Get().(*[]byte)
		defer frames.Put(buffer)
		event.Data, err = write.result((*buffer)[:0], out.value)
		if cap(event.Data) <= maxPooledFrame {
			*buffer = event.Data[:0]
		}
	}
	return yield(event, err) && err == nil
}

// frames recycles the buffers of encoded results up to maxPooledFrame.
var frames = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledFrame = 64 << 10

// streamEnded reports the end of a stream for a reason of the server, and logs an internal
// error.
func (h *Handler) streamEnded(ctx context.Context, o *opening, reason error) {
	if reason == nil || errors.Is(reason, sse.ErrClientGone) {
		return
	}
	if o.end == nil { // the last event was not asked for
		o.end = h.endOf(ctx, o.of, reason, "")
	}
	d, _ := o.end.Data.(details)
	h.streams.ReportEnd(ctx, sse.End{Transport: o.transport, Reason: d.Reason, Cause: d.Cause, Method: o.method, Position: o.position})
	if o.end.hidden {
		h.log.ErrorContext(ctx, "stream failed", "request", caller.From(ctx).RequestID, "after", time.Since(o.began), "error", reason)
	}
}

// streamRefusal converts the error of a stream that could not be opened.
func streamRefusal(of family, err error) error {
	var refused *sse.Refused
	if !errors.As(err, &refused) {
		return err
	}
	e := newError(of.own, "", details{RetryAfterMs: refused.RetryAfter.Milliseconds()}).withStatus(http.StatusServiceUnavailable)
	e.retryAfter = refused.RetryAfter
	switch {
	case errors.Is(err, sse.ErrTooManyStreams):
		e.Message = "the server has reached its limit of open streams"
		return e.withDetails(func(d *details) { d.Reason, d.Hint = reasonTooManyStreams, "Close streams, or try again later." })
	case errors.Is(err, sse.ErrShutdown):
		e.Message = "the server is shutting down"
		return e.withDetails(func(d *details) { d.Reason = reasonServerShutdown })
	}
	return err
}

// endOf returns the last event of a stream that ends for this reason, after the
// position.
func (h *Handler) endOf(ctx context.Context, of family, reason error, position string) *Error {
	ended := func(status int, name, message, hint string) *Error { // HTTP+JSON has the status in the event
		return of.convert(newError(of.own, message, details{Reason: name, Hint: hint, Position: position}).withStatus(status))
	}
	again := "Resume from the position; without one, start again."
	switch {
	case errors.Is(reason, sse.ErrSlowConsumer):
		return ended(http.StatusServiceUnavailable, reasonSlowConsumer, "the client read too slowly", again)
	case errors.Is(reason, sse.ErrShutdown):
		return ended(http.StatusServiceUnavailable, reasonServerShutdown, "the server is shutting down", again)
	case errors.Is(reason, sse.ErrEventTooLarge):
		return ended(http.StatusInternalServerError, reasonEventTooLarge, "the next event exceeds the size limit", "Select less, then resume from the position.")
	case errors.Is(reason, context.DeadlineExceeded):
		return ended(http.StatusServiceUnavailable, string(kg.CodeTimeout), "the stream's time limit was reached", again)
	}
	e := h.errorOf(ctx, of, true, reason)
	return e.withDetails(func(d *details) {
		// A stream cannot resume there: error.data has the oldest position that
		// remains.
		if gone := d.OldestSequence > 0 || of.log && d.Reason == string(kg.CodeResync); !gone {
			d.Position = position
		}
	})
}
