package sse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"koine/internal/backoff"
)

// Defaults and bounds of the client side.
const (
	DefaultMinWait     = 250 * time.Millisecond
	DefaultMaxWait     = 30 * time.Second
	DefaultMaxAttempts = 10
	// DefaultIdleTimeout is longer than the longest heartbeat interval that
	// koine offers (60 s).
	DefaultIdleTimeout = 90 * time.Second
	// MaxRefusalBytes bounds the body that is read of an answer other than a stream.
	MaxRefusalBytes = 64 << 10
)

// The reasons for which a client connects again.
var (
	// ErrEnded: the server ended the stream in order.
	ErrEnded = errors.New("sse: the stream ended")
	// ErrIdle: nothing came for longer than the idle timeout, no heartbeat either.
	ErrIdle = errors.New("sse: the stream went silent")
)

// Request makes the request of one connection. last is the id to resume after:
// "" until an event has had one.
type Request func(ctx context.Context, last string) (*http.Request, error)

// NewRequest repeats one request, with "Last-Event-ID" as soon as an id is
// known. To ask koine for ids from the start, let header carry that header,
// even empty (docs/reference/json-rpc.md).
func NewRequest(method, url string, header http.Header, body []byte) Request {
	return func(ctx context.Context, last string) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Accept-Encoding", "identity") // a compressor would hold events back
		for name, values := range header {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		return req, nil
	}
}

// ClientOptions are those of one subscription. The zero value of each field but
// Request means its default.
type ClientOptions struct {
	Request Request
	// HTTP sends the requests; http.DefaultClient by default. Its Timeout must
	// be 0, or it ends each stream.
	HTTP *http.Client
	// Refused converts an answer that is not a stream into the error to report, for
	// example a JSON-RPC error; body is the start of its body, the response's own is
	// closed. The result is wrapped in a *ResponseError.
	Refused func(response *http.Response, body []byte) error
	// MaxEventBytes bounds the block of one event.
	MaxEventBytes int
	// MinWait and MaxWait bound the wait before a new connection. It doubles
	// with each attempt that brings no event, and half of it is random.
	MinWait, MaxWait time.Duration
	// MaxAttempts is the number of connections in a row that may fail or end
	// without an event; the error of the last is then reported. -1: no bound.
	MaxAttempts int
	// FailFirst reports the first failure at once as long as there has been no stream,
	// so that a wrong address is not retried.
	FailFirst bool
	// Once reads one connection, for requests that must not be repeated.
	Once bool
	// IdleTimeout ends a connection on which nothing arrives. -1: never.
	IdleTimeout time.Duration
	// Retrying is called before each wait.
	Retrying func(err error, wait time.Duration)
}

func (o ClientOptions) withDefaults() ClientOptions {
	o.HTTP = cmp.Or(o.HTTP, http.DefaultClient)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, DefaultMaxEventBytes)
	o.MinWait = cmp.Or(o.MinWait, DefaultMinWait)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, DefaultMaxAttempts)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	return o
}

// ResponseError is an answer that is not a stream.
type ResponseError struct {
	Status     int
	RetryAfter time.Duration // the server's hint, 0 for none
	Body       []byte        // its beginning, at most MaxRefusalBytes
	Err        error         // result of ClientOptions.Refused, or nil
}

func (e *ResponseError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("sse: not an event stream: HTTP %d: %.200s", e.Status, e.Body)
}

// Unwrap returns the error of the dialect.
func (e *ResponseError) Unwrap() error { return e.Err }

// isTemporary reports whether the same request may succeed later. 4xx is the
// client's own fault, except for throttling; 501 will not change.
func (e *ResponseError) isTemporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// Subscribe reads a stream. When the connection is lost or the server ends the stream,
// it connects again and resumes after the last id. Without ids, events between two
// connections are lost.
//
// An event's ID is the last one seen at its arrival, as in a browser; an event with an
// ID only is a position. The iterator ends when the caller stops, or with one error:
// the context's, a permanent *ResponseError, ErrEventTooLarge, an error of Request,
// that of the last of MaxAttempts, or with FailFirst that of the first.
func Subscribe(ctx context.Context, options ClientOptions) iter.Seq2[Event, error] {
	options = options.withDefaults()
	return func(yield func(Event, error) bool) {
		last, failed, streamed := "", 0, false
		for {
			c := connection{options: options, last: last, yield: yield}
			err := c.readStream(ctx)
			if c.stopped {
				return
			}
			streamed = streamed || c.streamed
			if c.events > 0 {
				last, failed = c.last, 0
			} else {
				failed++
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			} else if !options.Once && !isFinal(err) && failed != options.MaxAttempts && (streamed || !options.FailFirst) {
				err = options.waitBackoff(ctx, err, max(0, failed-1))
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// isFinal reports whether a new connection would fail again.
func isFinal(err error) bool {
	var response *ResponseError
	if errors.As(err, &response) {
		return !response.isTemporary()
	}
	var request *requestError
	return errors.As(err, &request) || errors.Is(err, ErrEventTooLarge)
}

// requestError is a failure to make a request.
type requestError struct{ error }

func (e *requestError) Unwrap() error { return e.error }

// waitBackoff backs off after a connection that ended with cause, the nth without an
// event. It returns the context's error if that ends first.
func (o ClientOptions) waitBackoff(ctx context.Context, cause error, n int) error {
	var hint time.Duration
	var response *ResponseError
	if errors.As(cause, &response) {
		hint = response.RetryAfter
	}
	wait := backoff.Waits{Min: o.MinWait, Max: o.MaxWait}.After(n, hint)
	if o.Retrying != nil {
		o.Retrying(cause, wait)
	}
	return backoff.Sleep(ctx, wait)
}

// readRefusal returns the error for an answer that is not a stream, and closes it.
func readRefusal(response *http.Response, refused func(*http.Response, []byte) error) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxRefusalBytes))
	if err != nil {
		return fmt.Errorf("sse: reading the refusal: %w", err)
	}
	e := &ResponseError{Status: response.StatusCode, Body: body, RetryAfter: backoff.Hint(response.Header)}
	if refused != nil {
		e.Err = refused(response, body)
	}
	return e
}
