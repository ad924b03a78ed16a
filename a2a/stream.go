package a2a

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// opening is a stream that was asked for correctly and is not established yet.
type opening struct {
	of    family
	write *framing  // how it is written
	began time.Time // once it is established
	// heartbeat replaces the server's interval; 0 keeps it.
	heartbeat time.Duration
	// ids tells whether the client asked for id lines.
	ids bool
	// establish validates, authorises and registers, under a context that ends
	// with the stream.
	establish func(context.Context) (*feed, error)
}

// feed is an established stream.
type feed struct {
	// results end with the error that ends the stream.
	results iter.Seq2[result, error]
	// start is the position behind which the stream begins, as a token, or "".
	start string
	// position up to which everything was yielded, as a token, or "" while it
	// cannot be told. Any goroutine may call it.
	position func() string
	close    func()
}

// tellStart lets the stream begin with its position, if that can be told: a client that
// is cut off before the first event has another start when it comes back.
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
	value    any    // nil: nothing but the position is told
	position string // to resume from behind it, as a token, or ""
}

// framing is how a protocol writes what a stream says.
type framing struct {
	result func(any) ([]byte, error)
	// last says why the stream ends.
	last func(*Error) (sse.Event, error)
}

// serve establishes the stream and serves it to its end. An error means that
// nothing was written and the caller answers (WIRE §5, "Establishing a stream").
//
// It waits above the stream for as long as that is open, with whatever is on its
// stack; so what needs more of it is in functions of its own.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, o *opening) error {
	st, f, err := h.establish(r.Context(), o)
	if err != nil {
		return err
	}
	defer f.close()
	o.began = time.Now()
	reason := st.Serve(w, r, frame(f.results, o.write))
	return h.streamEnded(r.Context(), o, reason)
}

// establish opens the stream. Unless that fails it must be served and the feed
// closed.
func (h *Handler) establish(ctx context.Context, o *opening) (*sse.Stream, *feed, error) {
	var f *feed
	st, err := h.streams.Open(ctx, sse.StreamOptions{
		Heartbeat: o.heartbeat,
		IDs:       o.ids,
		Position:  func(string) string { return f.position() },
		Last: func(reason error, position string) (sse.Event, bool) {
			event, err := o.write.last(h.endOf(ctx, o.of, reason, cmp.Or(position, f.start)))
			return event, err == nil
		},
	})
	if err != nil {
		return nil, nil, refusal(o.of, err)
	}
	if f, err = guarded(func() (*feed, error) { return o.establish(st.Context()) }); err != nil {
		st.Close()
		return nil, nil, err
	}
	return st, f, nil
}

// frame gives the results the form in which they are sent.
func frame(results iter.Seq2[result, error], write *framing) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for out, err := range results {
			event := sse.Event{ID: out.position}
			if err == nil && out.value != nil {
				event.Data, err = write.result(out.value)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// streamEnded logs what was hidden from the client. It returns an error when
// there was no stream at all, and the caller answers.
func (h *Handler) streamEnded(ctx context.Context, o *opening, reason error) error {
	var refused *sse.Refused
	switch {
	case reason == nil || errors.Is(reason, sse.ErrClientGone):
		return nil
	case errors.As(reason, &refused):
		return refusal(o.of, reason)
	}
	if e := h.endOf(ctx, o.of, reason, ""); e.hidden {
		h.log.ErrorContext(ctx, "stream failed", "request", caller.From(ctx).RequestID, "after", time.Since(o.began), "error", reason)
	}
	return nil
}

// refusal is why no stream could be opened.
func refusal(of family, err error) error {
	var refused *sse.Refused
	if !errors.As(err, &refused) {
		return err
	}
	e := newError(of.own, "", details{RetryAfterMs: refused.RetryAfter.Milliseconds()}).at(http.StatusServiceUnavailable)
	e.retryAfter = refused.RetryAfter
	switch {
	case errors.Is(err, sse.ErrTooManyStreams):
		e.Message = "there are as many open streams as the server serves"
		return e.with(func(d *details) { d.Reason, d.Hint = reasonTooManyStreams, "Close streams, or try again later." })
	case errors.Is(err, sse.ErrShutdown):
		e.Message = "the server is shutting down"
		return e.with(func(d *details) { d.Reason = reasonServerShutdown })
	}
	return err
}

// endOf is the last event of a stream that ends for this reason, behind the
// position.
func (h *Handler) endOf(ctx context.Context, of family, reason error, position string) *Error {
	ended := func(name, message, hint string) *Error {
		return of.form(newError(of.own, message, details{Reason: name, Hint: hint, Position: position}))
	}
	again := "Resume from the position; without one, start again."
	switch {
	case errors.Is(reason, sse.ErrSlowConsumer):
		return ended(reasonSlowConsumer, "the client did not take the events in time", again)
	case errors.Is(reason, sse.ErrShutdown):
		return ended(reasonServerShutdown, "the server is shutting down", again)
	case errors.Is(reason, sse.ErrEventTooLarge):
		return ended(reasonEventTooLarge, "the next event is larger than what is sent", "Select less, then resume from the position.")
	case errors.Is(reason, context.DeadlineExceeded):
		return ended(string(kg.CodeTimeout), "the stream's time is over", again)
	}
	e := h.errorOf(ctx, of, true, reason)
	return e.with(func(d *details) {
		// From there it does not go on: error.data names the oldest place that is left.
		if gone := d.OldestSequence > 0 || of.log && d.Reason == string(kg.CodeResync); !gone {
			d.Position = position
		}
	})
}
