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

// callOnce makes a JSON-RPC call, once.
func (c *Client) callOnce(ctx context.Context, method string, params, into any) error {
	body, err := encodeRequest(method, params)
	if err != nil {
		return err
	}
	return c.sendRequest(ctx, body, into)
}

// callWithRetry makes one that may be made again until an answer is there: it only
// reads, or has an idempotency key.
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

// exchangeJSON sends JSON and reads the whole answer. The header may be nil.
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
		return nil, fmt.Errorf("client: the answer broke off: %w", err)
	case len(text) > MaxResponseBytes:
		return nil, &Error{Reason: LimitExceeded, Message: fmt.Sprintf("the answer has more than %d bytes", MaxResponseBytes)}
	}
	return text, nil
}

// Do makes a plain request of the server, once and in the same name: for those of its
// addresses that have no method here, as /data. The path, which begins with a slash, is
// below the address that was opened. Who has the answer closes its body; an answer that
// is no success is an *Error.
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
		return nil, fmt.Errorf("client: the answer broke off: %w", err)
	}
	return nil, responseError(response, text)
}

// decodeResult is what is in a JSON-RPC response.
func decodeResult(text []byte) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *wireError      `json:"error"`
	}
	switch err := json.Unmarshal(text, &answer); {
	case err != nil || answer.Error == nil && answer.Result == nil:
		return nil, &Error{Message: fmt.Sprintf("the server's answer is not JSON-RPC: %.*q", maxQuoted, text)}
	case answer.Error != nil:
		return nil, answer.Error.toError()
	}
	return answer.Result, nil
}

// decodeAnswer reads what a server sent. That it has another form than it should is no
// fault of the connection, and not tried again.
func decodeAnswer(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return &Error{Message: fmt.Sprintf("the server's answer is not understood: %v", err)}
	}
	return nil
}

// runAttempts tries until it works, fails for good, or was tried often enough.
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

// waitBackoff backs off after the nth attempt in vain, counted from 1.
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
