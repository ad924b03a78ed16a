package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"koine/internal/sse"
)

// onServer says which server, and as whom.
type onServer struct {
	URL string `help:"The server (default ${url})." placeholder:"URL"`
	as
}

// ask makes a call and reads its result; raw is the result as it came.
func (s *onServer) ask(ctx context.Context, method string, params map[string]any, result any) (raw json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if raw, err = newClient(s.URL, s.as).call(ctx, method, params); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	return raw, nil
}

// follow asks for a stream, which is asked for again behind what came when the
// connection is lost.
func (s *onServer) follow(t terminal, method string, params map[string]any) (sse.ClientOptions, error) {
	body, err := rpcBody(method, params)
	if err != nil {
		return sse.ClientOptions{}, err
	}
	server := newClient(s.URL, s.as)
	header := server.header()
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "text/event-stream")
	header["Last-Event-Id"] = []string{""} // asks for ids
	return sse.ClientOptions{
		Request: sse.NewRequest(http.MethodPost, server.base+"/a2a", header, body),
		Refused: func(_ *http.Response, body []byte) error {
			_, err := rpcResult(body)
			return err
		},
		FailFirst: true,
		Retrying: func(cause error, wait time.Duration) {
			t.sayf("connection lost (%v); again in %s", cause, wait.Round(time.Millisecond))
		},
	}, nil
}

// lost is what the error means that ended a stream.
func (s *onServer) lost(err error) error {
	var refused *sse.ResponseError
	if errors.As(err, &refused) {
		var own *rpcError
		if errors.As(refused.Err, &own) {
			return own
		}
		return exitError{err, exitFailure}
	}
	if errors.Is(err, sse.ErrEventTooLarge) || errors.As(err, new(*rpcError)) {
		return err
	}
	if parse := (*url.Error)(nil); errors.As(err, &parse) && parse.Op == "parse" {
		return usageError{err}
	}
	return newClient(s.URL, s.as).unreachable(err)
}
