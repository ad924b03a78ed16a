package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"koine/kg"
)

// maxAnswerBytes bounds what the client reads of one answer; exports stream.
const maxAnswerBytes = 256 << 20

// client talks to a server.
type client struct {
	base string
	as   as
	http *http.Client
}

func newClient(url string, as as) *client {
	if url == "" {
		url = defaultURL
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // exports pass it through as they want
	transport.ResponseHeaderTimeout = 0 // a load answers when it is done
	return &client{base: strings.TrimRight(url, "/"), as: as, http: &http.Client{Transport: transport}}
}

// header is that of every request.
func (c *client) header() http.Header {
	h := http.Header{"User-Agent": {"koine/" + versionText()}}
	if c.as.As != "" {
		h.Set("X-Agent-ID", c.as.As)
	}
	if c.as.Key != "" {
		h.Set("Authorization", "Bearer "+c.as.Key)
	}
	return h
}

// do sends a request and gives the answer if it is a success; a refusal
// becomes an error.
func (c *client) do(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, usageError{err}
	}
	r.Header = c.header()
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.unreachable(err)
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, refusalOf(response)
	}
	return response, nil
}

// unreachable is the error of a server that does not answer.
func (c *client) unreachable(err error) error {
	return exitError{fmt.Errorf("no server answers at %s: %w\nIs it running? Start one with: koine serve --demo", c.base, err), exitUnreachable}
}

// refusalOf makes an error of an answer that is none.
func refusalOf(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	var p struct {
		Error  *rpcError      `json:"error"`
		Errors []graphqlError `json:"errors"`
	}
	if json.Unmarshal(body, &p) == nil && len(p.Errors) > 0 && p.Errors[0].Message != "" {
		return p.Errors[0].error()
	}
	if p.Error == nil || p.Error.Message == "" {
		return exitError{fmt.Errorf("the server answered %s: %s", response.Status, bytes.TrimSpace(body[:min(len(body), 500)])), exitFailure}
	}
	return p.Error
}

// rpcError is a server's refusal: of a JSON-RPC call, or of any other request.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Reason string          `json:"reason"`
		Field  string          `json:"field"`
		Detail string          `json:"detail"`
		Hint   string          `json:"hint"`
		Errors json.RawMessage `json:"errors"`
	} `json:"data"`
}

// Error is the message, with what the server gives beside it.
func (e *rpcError) Error() string {
	text := e.Message
	if e.Data.Field != "" {
		text += ": " + e.Data.Field
	}
	if e.Data.Detail != "" {
		text += ": " + e.Data.Detail
	}
	var list []struct {
		Message    string `json:"message"`
		Path       []any  `json:"path"`
		Extensions struct {
			Code string `json:"code"`
		} `json:"extensions"`
	}
	if json.Unmarshal(e.Data.Errors, &list) == nil {
		for _, one := range list {
			if one.Message == e.Message {
				continue
			}
			text += "\n  "
			for i, step := range one.Path {
				if i > 0 {
					text += "."
				}
				text += fmt.Sprint(step)
			}
			if len(one.Path) > 0 {
				text += ": "
			}
			text += one.Message
			if code := one.Extensions.Code; code != "" && code != e.Data.Reason {
				text += " (" + code + ")"
			}
		}
	}
	if e.Data.Reason != "" {
		text += " (" + e.Data.Reason + ")"
	}
	switch {
	case e.Data.Hint == "":
	case e.Data.Reason == string(kg.CodeUnauthenticated):
		text += "\nPut a key or a token into KOINE_KEY." // it speaks of headers
	default:
		text += "\n" + e.Data.Hint
	}
	return text
}

// call makes a JSON-RPC call and gives its result.
func (c *client) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	body, err := rpcBody(method, params)
	if err != nil {
		return nil, err
	}
	response, err := c.do(ctx, http.MethodPost, "/a2a", http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return rpcResult(text)
}

func rpcBody(method string, params any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

func rpcResult(text []byte) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("the server's answer is not JSON-RPC: %w", err)
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if answer.Result == nil {
		return nil, errors.New("the server's answer has neither result nor error")
	}
	return answer.Result, nil
}

// patience is how long a short request may take.
const patience = 60 * time.Second
