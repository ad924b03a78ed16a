package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Query is a question to the graph.
type Query struct {
	// Text is GraphQL. Operation says which operation of it, if there are several.
	Text      string
	Operation string
	Variables map[string]any
	// RequiredCertainty, 0 to 1, leaves out what is less certain; MaxAge what was
	// recorded longer ago, in seconds rounded up. 0 leaves nothing out.
	RequiredCertainty float64
	MaxAge            time.Duration
	// Budget says how much of an answer to give at the most.
	Budget Budget
	// At reads the past: a revision, or an RFC 3339 time. "" is now.
	At string
	// MinRevision waits until this revision can be read: that of one's own update,
	// for example.
	MinRevision uint64
	TaskID      string
	SessionID   string
}

// Budget bounds an answer, whose lists are made shorter to fit. Zero fields bound
// nothing.
type Budget struct {
	MaxBytes      int `json:"maxBytes,omitempty"`
	MaxTokens     int `json:"maxTokens,omitempty"`
	MaxStatements int `json:"maxStatements,omitempty"`
}

// QueryMetadata says what an answer is about.
type QueryMetadata struct {
	Revision       uint64         `json:"revision"` // what was read
	Position       string         `json:"position"` // where a subscription goes on behind it
	DurationMs     float64        `json:"durationMs"`
	StatementsRead int64          `json:"statementsRead"`
	Sources        []string       `json:"sources"` // whose assertions were read, up to 20
	Errors         []GraphQLError `json:"errors,omitempty"`
	Truncated      []Truncation   `json:"truncated,omitempty"` // where a budget cut
	Hints          []Hint         `json:"hints,omitempty"`     // names that nothing has
	// Raw is all that the server sent of it.
	Raw json.RawMessage `json:"-"`
}

// Truncation is a list that a budget made shorter.
type Truncation struct {
	Path   []any  `json:"path"`
	Reason string `json:"reason"` // BYTES, TOKENS, STATEMENTS
	Cursor string `json:"cursor"` // where it goes on
}

// Hint is about a name in a query that nothing in the graph has.
type Hint struct {
	Path    []any    `json:"path"`
	Message string   `json:"message"`
	Nearest []string `json:"nearest,omitempty"` // what may have been meant
}

// Query reads the graph. The answer's data goes into what into points to, as
// json.Unmarshal does it: a struct, a map, or a json.RawMessage for the JSON as it
// is; nil drops it.
//
// Where only a part could be given, into has that part, and the error is an *Error
// with what is wrong in Errors.
//
// A query is sent again while there is no answer. A text that holds a mutation is sent
// once: make changes with Update, which may be sent again.
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
			return meta, fmt.Errorf("client: the data of the answer: %w", err)
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

// setNonZero sets a member unless the value is the zero one.
func setNonZero[T comparable](p map[string]any, name string, value T) {
	var zero T
	if value != zero {
		p[name] = value
	}
}

// setControls adds koine's own controls to params, if there are any.
func setControls(p, own map[string]any) {
	if len(own) > 0 {
		p["metadata"] = map[string]any{"koine": own}
	}
}
