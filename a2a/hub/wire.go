package hub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"koine/a2a"
	"koine/a2a/internal/v03"
	"koine/a2a/internal/v1"
	"koine/internal/delivery/forward"
	"koine/internal/plainjson"
)

// Wire calls upstreams by A2A 1.0 and 0.3 (forward.Options.Wire).
type Wire struct{}

var _ forward.Wire = Wire{}

// wireCall is an operation in both bindings.
type wireCall struct {
	method     string // JSON-RPC
	method03   string
	verb, path string // HTTP+JSON; the id of the task is between path and suffix
	suffix     string
}

var wireCalls = map[forward.Op]wireCall{
	forward.Send:       {"SendMessage", "message/send", http.MethodPost, "message:send", ""},
	forward.SendStream: {"SendStreamingMessage", "message/stream", http.MethodPost, "message:stream", ""},
	forward.Get:        {"GetTask", "tasks/get", http.MethodGet, "tasks/", ""},
	forward.Subscribe:  {"SubscribeToTask", "tasks/resubscribe", http.MethodPost, "tasks/", ":subscribe"},
	forward.Cancel:     {"CancelTask", "tasks/cancel", http.MethodPost, "tasks/", ":cancel"},
}

// rpcRequest is a JSON-RPC request.
type rpcRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// Request writes a call.
func (Wire) Request(d forward.Dialect, c *forward.Call) (*forward.Request, error) {
	o, params := wireCalls[c.Op], v1.Params(c)
	method := o.method
	if d.Version == forward.V03 {
		method, params = o.method03, v03.Params(c)
	}
	out := &forward.Request{Method: http.MethodPost, Header: http.Header{"A2a-Version": {string(d.Version)}, a2a.HopHeader: {strconv.Itoa(c.Hops)}}}
	if d.Binding == forward.JSONRPC {
		body, err := plainjson.Encode(rpcRequest{"2.0", 1, method, params})
		out.Body = body
		return out, err
	}
	out.Method, out.Path = o.verb, o.path
	if c.Message == nil {
		out.Path += url.PathEscape(c.Task) + o.suffix
		params = struct{}{}
	}
	if o.verb == http.MethodGet {
		return out, nil
	}
	body, err := plainjson.Encode(params)
	out.Body = body
	return out, err
}

// The reasons of A2A by their codes (A2A 1.0, section 5.4), and those of JSON-RPC.
var wireReasons = map[int]string{
	-32700: "PARSE_ERROR", -32600: "INVALID_REQUEST", -32601: "METHOD_NOT_FOUND", -32602: "INVALID_PARAMS", -32603: "INTERNAL_ERROR",
	-32001: "TASK_NOT_FOUND", -32002: "TASK_NOT_CANCELABLE", -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED", -32004: "UNSUPPORTED_OPERATION",
	-32005: "CONTENT_TYPE_NOT_SUPPORTED", -32006: "INVALID_AGENT_RESPONSE", -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
	-32008: "EXTENSION_SUPPORT_REQUIRED", -32009: "VERSION_NOT_SUPPORTED", -31401: "UNAUTHENTICATED", -31403: "UNAUTHORIZED",
}

// Read reads an answer or an event.
func (Wire) Read(d forward.Dialect, op forward.Op, status int, data []byte) (*forward.Answer, error) {
	if isRetryable(status) {
		return nil, forward.ErrNoAnswer
	}
	var body struct {
		Result json.RawMessage `json:"result"`
		Error  *wireRefusal    `json:"error"`
	}
	decoded := json.Unmarshal(data, &body) == nil
	if decoded && body.Error != nil {
		return nil, body.Error.reason()
	}
	switch {
	case status != 0 && (status < 200 || status > 299):
		return nil, forward.ErrNoAnswer // of a proxy, or a redirect
	case d.Binding == forward.HTTPJSON:
		return v1.ReadResult(op, data)
	case !decoded || len(body.Result) == 0:
		return nil, forward.ErrMalformed
	}
	if d.Version == forward.V03 {
		return v03.ReadResult(body.Result)
	}
	return v1.ReadResult(op, body.Result)
}

// isRetryable reports whether a status means that the same call may succeed later,
// regardless of the body. Credentials can be replaced.
func isRetryable(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// wireRefusal is an error: of JSON-RPC, or a google.rpc.Status.
type wireRefusal struct {
	Code    int `json:"code"`
	Details []struct {
		Reason string `json:"reason"`
	} `json:"details"`
}

func (e *wireRefusal) reason() error {
	reason := wireReasons[e.Code]
	for _, d := range e.Details {
		for _, known := range wireReasons {
			if d.Reason == known {
				reason = known
			}
		}
	}
	switch {
	case reason == "TASK_NOT_FOUND":
		return forward.ErrTaskUnknown
	case slices.Contains([]string{"UNSUPPORTED_OPERATION", "METHOD_NOT_FOUND"}, reason):
		return forward.ErrUnsupported
	case reason == "":
		reason = "error " + strconv.Itoa(e.Code)
	}
	return &forward.Refusal{Reason: reason}
}
