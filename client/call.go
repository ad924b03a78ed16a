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

// call makes a JSON-RPC call, once.
func (c *Client) call(ctx context.Context, method string, params, into any) error {
	body, err := request(method, params)
	if err != nil {
		return err
	}
	return c.send(ctx, body, into)
}

// callAgain makes one that may be made again until an answer is there: it only
// reads, or has an idempotency key.
func (c *Client) callAgain(ctx context.Context, method string, params, into any) error {
	body, err := request(method, params)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := c.send(ctx, body, into)
		if err == nil || ctx.Err() != nil || !passing(err) || attempt == c.retry.Attempts {
			return err
		}
		if err := c.retry.wait(ctx, err, attempt); err != nil {
			return err
		}
	}
}

func request(method string, params any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

func (c *Client) send(ctx context.Context, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.rpc, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	if err != nil {
		return fmt.Errorf("client: the answer broke off: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, text)
	}
	if len(text) > MaxAnswerBytes {
		return &Error{Reason: LimitExceeded, Message: fmt.Sprintf("the answer has more than %d bytes", MaxAnswerBytes)}
	}
	result, err := resultOf(text)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	return unmarshal(result, into)
}

// resultOf is what is in a JSON-RPC response.
func resultOf(text []byte) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *wireError      `json:"error"`
	}
	switch err := json.Unmarshal(text, &answer); {
	case err != nil || answer.Error == nil && answer.Result == nil:
		return nil, &Error{Message: fmt.Sprintf("the server's answer is not JSON-RPC: %.*q", maxQuoted, text)}
	case answer.Error != nil:
		return nil, answer.Error.error(http.StatusOK)
	}
	return answer.Result, nil
}

// unmarshal reads what a server sent. That it has another form than it should is no
// fault of the connection, and not tried again.
func unmarshal(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return &Error{Message: fmt.Sprintf("the server's answer is not understood: %v", err)}
	}
	return nil
}

// wait backs off after the nth attempt in vain, counted from 1.
func (r Retry) wait(ctx context.Context, cause error, n int) error {
	var hint time.Duration
	var e *Error
	if errors.As(cause, &e) {
		hint = e.RetryAfter
	}
	wait := backoff.Waits{Min: r.MinWait, Max: r.MaxWait}.After(n-1, hint)
	if r.Retrying != nil {
		r.Retrying(cause, wait)
	}
	if err := backoff.Sleep(ctx, wait); err != nil {
		return errors.Join(err, cause)
	}
	return nil
}
