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

// event is an event of a stream: a result, or only a new position.
type event struct {
	position string
	result   json.RawMessage // nil if the event only has a position
	// connection is the number of the stream's connection, from 1.
	connection int
}

// streamRPC calls a method that answers with a stream. It resumes after the event with the id
// lastEventID, if that is not "". established reports whether this stream continues one that
// was connected before.
func (c *Client) streamRPC(ctx context.Context, method string, params any, lastEventID string, established bool) iter.Seq2[event, error] {
	body, err := encodeRequest(method, params)
	if err != nil {
		return func(yield func(event, error) bool) { yield(event{}, err) }
	}
	// The server sends event ids only if the request has Last-Event-ID, even if empty.
	header := http.Header{"Content-Type": {"application/json"}, "Last-Event-Id": {lastEventID}}
	connect := sse.NewRequest(http.MethodPost, c.rpc, header, body)
	read := func(e sse.Event) (json.RawMessage, error) {
		if len(e.Data) == 0 {
			return nil, nil
		}
		return decodeResult(e.Data)
	}
	return c.streamEvents(ctx, connect, read, established, serverShutdown, slowConsumer)
}

// streamEvents decodes the events of a stream with read. It reconnects when the connection is
// lost, and when the server ends the stream with one of the resumable reasons. Any other
// error ends it.
func (c *Client) streamEvents(ctx context.Context, connect sse.Request, read func(sse.Event) (json.RawMessage, error), established bool, resumable ...Reason) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		connections := 0
		var last *Error // the error that the server ended the stream with
		options := sse.ClientOptions{
			HTTP: c.http, Refused: responseError,
			MinWait: c.retry.MinWait, MaxWait: c.retry.MaxWait, MaxAttempts: c.retry.Attempts, FailFirst: c.retry.FailFast && !established,
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
			if last = nil; errors.As(err, &last) && slices.Contains(resumable, last.Reason) {
				continue
			}
			if !yield(event{position: e.ID, result: result, connection: connections}, err) || err != nil {
				return
			}
		}
	}
}

// unwrapServerError returns the server's error without the context that package sse wraps
// around it.
func unwrapServerError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return err
}
