package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"koine/internal/backoff"
)

// callOnce makes a JSON-RPC call without retrying it.
func (c *Client) callOnce(ctx context.Context, method string, params, into any) error {
	body, err := encodeRequest(method, params)
	if err != nil {
		return err
	}
	return c.sendRequest(ctx, body, into)
}

// callWithRetry makes a JSON-RPC call and retries it. The call must be read-only or have an
// idempotency key.
func (c *Client) callWithRetry(ctx context.Context, method string, params, into any) error {
	body, err := encodeRequest(method, params)
	if err != nil {
		return err
	}
	return c.retry.runAttempts(ctx, func() error { return c.sendRequest(ctx, body, into) })
}

func encodeRequest(method string, params any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

func (c *Client) sendRequest(ctx context.Context, body []byte, into any) error {
	text, err := c.exchangeJSON(ctx, http.MethodPost, c.rpc, body, nil)
	if err != nil {
		return err
	}
	result, err := decodeResult(text)
	if err != nil || into == nil {
		return err
	}
	return decodeAnswer(result, into)
}

// exchangeJSON sends JSON and reads the whole response. The header may be nil.
func (c *Client) exchangeJSON(ctx context.Context, method, url string, body []byte, header http.Header) ([]byte, error) {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	response, err := c.doRequest(ctx, method, url, header, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxResponseBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: reading the response: %w", err)
	case len(text) > MaxResponseBytes:
		return nil, &Error{Reason: LimitExceeded, Message: fmt.Sprintf("the response exceeds %d bytes", MaxResponseBytes)}
	}
	return text, nil
}

// Do sends an HTTP request with the client's credentials, without retrying it. It is for
// endpoints that no method covers, such as /data. The path begins with a slash and is
// relative to the address that was opened. The caller must close the body of the response. A
// status other than 2xx is returned as an *Error.
func (c *Client) Do(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	return c.doRequest(ctx, method, c.base+path, header, body)
}

func (c *Client) doRequest(ctx context.Context, method, url string, header http.Header, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	if err != nil {
		return nil, fmt.Errorf("client: reading the response: %w", err)
	}
	return nil, responseError(response, text)
}

// decodeResult returns the result of a JSON-RPC response, or its error.
func decodeResult(text []byte) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *wireError      `json:"error"`
	}
	switch err := json.Unmarshal(text, &answer); {
	case err != nil || answer.Error == nil && answer.Result == nil:
		return nil, &Error{Message: fmt.Sprintf("the response is not JSON-RPC: %.*q", maxQuoted, text)}
	case answer.Error != nil:
		return nil, answer.Error.toError()
	}
	return answer.Result, nil
}

// decodeAnswer decodes JSON from a server. A failure is an *Error without a reason, which is
// not retried: the connection is not at fault.
func decodeAnswer(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return &Error{Message: fmt.Sprintf("cannot decode the response: %v", err)}
	}
	return nil
}

// runAttempts calls try until it succeeds, fails permanently, or the attempts are used up.
func (r Retry) runAttempts(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || ctx.Err() != nil || r.FailFast || !isTransient(err) || attempt == r.Attempts {
			return err
		}
		if err := r.waitBackoff(ctx, err, attempt); err != nil {
			return err
		}
	}
}

// waitBackoff waits after the nth failed attempt, counted from 1. It returns an error if ctx is
// done.
func (r Retry) waitBackoff(ctx context.Context, cause error, n int) error {
	var hint time.Duration
	var e *Error
	if errors.As(cause, &e) {
		hint = e.RetryAfter
	}
	wait := backoff.Waits{Min: r.MinWait, Max: r.MaxWait}.After(n-1, hint)
	if r.OnRetry != nil {
		r.OnRetry(cause, wait)
	}
	if err := backoff.Sleep(ctx, wait); err != nil {
		return errors.Join(err, cause)
	}
	return nil
}
