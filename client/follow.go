package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"

	"koine/internal/sse"
)

// event is what came on a stream: a result, or only where it is now.
type event struct {
	position string
	result   json.RawMessage // nil for a position
	// connection counts those of the stream, from 1.
	connection int
}

// follow calls a method whose answer is a stream. It connects again when the
// connection is lost, and behind the last words of a server that goes down or finds
// the client slow. Any other last words are the error that ends it.
func (c *Client) follow(ctx context.Context, method string, params any) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		body, err := request(method, params)
		if err != nil {
			yield(event{}, err)
			return
		}
		// With Last-Event-ID, even an empty one, events have ids.
		header := http.Header{"Content-Type": {"application/json"}, "Last-Event-Id": {""}}
		connections, again := 0, sse.NewRequest(http.MethodPost, c.rpc, header, body)
		connect := func(ctx context.Context, last string) (*http.Request, error) {
			connections++
			return again(ctx, last)
		}
		options := sse.ClientOptions{
			Request: connect, HTTP: c.http, Refused: refusal,
			MinWait: c.retry.MinWait, MaxWait: c.retry.MaxWait, MaxAttempts: c.retry.Attempts, Retrying: c.retry.Retrying,
		}
		for e, err := range sse.Subscribe(ctx, options) {
			if err != nil {
				yield(event{}, plain(err))
				return
			}
			out := event{position: e.ID, connection: connections}
			if len(e.Data) > 0 {
				if out.result, err = resultOf(e.Data); errors.Is(err, serverShutdown) || errors.Is(err, slowConsumer) {
					continue
				}
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// plain is the server's own error, without what the stream's client says around it.
func plain(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return err
}
