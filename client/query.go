package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Query is a GraphQL query and the view that it reads.
type Query struct {
	// Text is the GraphQL document. Operation selects one of several operations.
	Text      string
	Operation string
	Variables map[string]any
	// RequiredCertainty, from 0 to 1, excludes assertions that are less certain. MaxAge
	// excludes older ones, and is rounded up to seconds. 0 excludes none.
	RequiredCertainty float64
	MaxAge            time.Duration
	// Budget bounds the size of the response.
	Budget Budget
	// At is the revision or the RFC 3339 time to read at. "" is the newest revision.
	At string
	// MinRevision makes the query wait until this revision can be read, such as the
	// revision of an own update.
	MinRevision uint64
	TaskID      string
	SessionID   string
}

// Budget bounds a response. The server shortens its lists to fit. Zero fields are no
// bounds.
type Budget struct {
	MaxBytes      int `json:"maxBytes,omitempty"`
	MaxTokens     int `json:"maxTokens,omitempty"`
	MaxStatements int `json:"maxStatements,omitempty"`
}

// QueryMetadata describes the response to a query.
type QueryMetadata struct {
	Revision       uint64         `json:"revision"` // the revision that was read
	Position       string         `json:"position"` // the position after it, for a subscription
	DurationMs     float64        `json:"durationMs"`
	StatementsRead int64          `json:"statementsRead"`
	Sources        []string       `json:"sources"` // of the assertions that were read, at most 20
	Errors         []GraphQLError `json:"errors,omitempty"`
	Truncated      []Truncation   `json:"truncated,omitempty"` // lists that a budget shortened
	Hints          []Hint         `json:"hints,omitempty"`     // unknown names in the query
	// Raw is the metadata as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Truncation describes a list that a budget shortened.
type Truncation struct {
	Path   []any  `json:"path"`
	Reason string `json:"reason"` // BYTES, TOKENS, STATEMENTS
	Cursor string `json:"cursor"` // the cursor to continue from
}

// Hint describes a name in a query that does not occur in the graph.
type Hint struct {
	Path    []any    `json:"path"`
	Message string   `json:"message"`
	Nearest []string `json:"nearest,omitempty"` // similar names
}

// Query runs a query and decodes the data of the response into into, like json.Unmarshal:
// a pointer to a struct, a map, or a json.RawMessage. If into is nil, the data is dropped.
//
// If fields fail, into has the other fields, and the error is an *Error that lists the
// failures in Errors.
//
// Query retries. A document with a mutation is sent only once; use Update to change the
// graph, which can be retried.
func (c *Client) Query(ctx context.Context, q Query, into any) (*QueryMetadata, error) {
	if err := c.requireGraphQL(); err != nil {
		return nil, err
	}
	var answer struct {
		Data     json.RawMessage `json:"data"`
		Metadata json.RawMessage `json:"queryMetadata"`
	}
	call := c.callOnce
	if isReadOnly(q.Text) {
		call = c.callWithRetry
	}
	if err := call(ctx, "knowledge/query", q.requestParams(), &answer); err != nil {
		return nil, err
	}
	meta := &QueryMetadata{Raw: answer.Metadata}
	if len(meta.Raw) > 0 {
		if err := decodeAnswer(meta.Raw, meta); err != nil {
			return nil, err
		}
	}
	if into != nil && len(answer.Data) > 0 {
		if err := json.Unmarshal(answer.Data, into); err != nil {
			return meta, fmt.Errorf("client: decoding the data: %w", err)
		}
	}
	if errs := meta.Errors; len(errs) > 0 {
		return meta, &Error{Reason: errs[0].Reason(), Message: "the answer has errors", Errors: errs}
	}
	return meta, nil
}

func (q *Query) requestParams() map[string]any {
	p := map[string]any{"query": q.Text}
	setNonZero(p, "operationName", q.Operation)
	setNonZero(p, "taskId", q.TaskID)
	setNonZero(p, "sessionId", q.SessionID)
	setNonZero(p, "requiredCertainty", q.RequiredCertainty)
	setNonZero(p, "maxAgeSeconds", int64((q.MaxAge+time.Second-1)/time.Second))
	if len(q.Variables) > 0 {
		p["variables"] = q.Variables
	}
	own := map[string]any{}
	setNonZero(own, "budget", q.Budget)
	setNonZero(own, "at", q.At)
	setNonZero(own, "minRevision", q.MinRevision)
	setControls(p, own)
	return p
}

// setNonZero sets a member unless the value is zero.
func setNonZero[T comparable](p map[string]any, name string, value T) {
	var zero T
	if value != zero {
		p[name] = value
	}
}

// setControls adds the controls specific to koine to params, if there are any.
func setControls(p, own map[string]any) {
	if len(own) > 0 {
		p["metadata"] = map[string]any{"koine": own}
	}
}
