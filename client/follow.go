package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"koine/internal/sse"
)

// event is what came on a stream: a result, or only where it is now.
type event struct {
	position string
	result   json.RawMessage // nil for a position
	// connection counts those of the stream, from 1.
	connection int
}

// streamRPC calls a method whose answer is a stream. It goes on behind the id of an event, if
// that is not "". There may have been a stream already that this one goes on with.
func (c *Client) streamRPC(ctx context.Context, method string, params any, behind string, before bool) iter.Seq2[event, error] {
	body, err := encodeRequest(method, params)
	if err != nil {
		return func(yield func(event, error) bool) { yield(event{}, err) }
	}
	// With Last-Event-ID, even an empty one, events have ids.
	header := http.Header{"Content-Type": {"application/json"}, "Last-Event-Id": {behind}}
	connect := sse.NewRequest(http.MethodPost, c.rpc, header, body)
	read := func(e sse.Event) (json.RawMessage, error) {
		if len(e.Data) == 0 {
			return nil, nil
		}
		return decodeResult(e.Data)
	}
	return c.streamEvents(ctx, connect, read, before, serverShutdown, slowConsumer)
}

// streamEvents tells what read makes of the events. It connects again when the connection is
// lost, and behind last words of the server that have one of these reasons. Any others
// are the error that ends it.
func (c *Client) streamEvents(ctx context.Context, connect sse.Request, read func(sse.Event) (json.RawMessage, error), before bool, goesOn ...Reason) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		connections := 0
		var last *Error // the last words
		options := sse.ClientOptions{
			HTTP: c.http, Refused: responseError,
			MinWait: c.retry.MinWait, MaxWait: c.retry.MaxWait, MaxAttempts: c.retry.Attempts, FailFirst: c.retry.FailFast && !before,
			Request: func(ctx context.Context, at string) (*http.Request, error) {
				connections++
				return connect(ctx, at)
			},
			Retrying: func(cause error, wait time.Duration) {
				if last != nil {
					cause = last
				}
				if last = nil; c.retry.OnRetry != nil {
					c.retry.OnRetry(unwrapServerError(cause), wait)
				}
			},
		}
		for e, err := range sse.Subscribe(ctx, options) {
			if err != nil {
				yield(event{}, unwrapServerError(err))
				return
			}
			result, err := read(e)
			if last = nil; errors.As(err, &last) && slices.Contains(goesOn, last.Reason) {
				continue
			}
			if !yield(event{position: e.ID, result: result, connection: connections}, err) || err != nil {
				return
			}
		}
	}
}

// unwrapServerError is the server's own error, without what the stream's client says around it.
func unwrapServerError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return err
}
