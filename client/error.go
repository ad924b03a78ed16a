package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"koine/internal/backoff"
)

// Reason says why something was refused. It is an error, so that errors.Is finds
// it in an *Error. Those below are the ones that programs mind most; docs/protocol.md
// has them all.
type Reason string

// Reasons of the client's own.
const (
	CapabilityMissing Reason = "CAPABILITY_MISSING" // the agent card does not announce it
	Rejected          Reason = "REJECTED"           // the update was judged and refused
	Unanswered        Reason = "UNANSWERED"         // nobody responded in time
)

// Reasons of servers.
const (
	Invalid             Reason = "INVALID"
	LimitExceeded       Reason = "LIMIT_EXCEEDED"
	NotFound            Reason = "NOT_FOUND"
	GraphNotFound       Reason = "GRAPH_NOT_FOUND"
	ChannelNotFound     Reason = "CHANNEL_NOT_FOUND"
	Unauthenticated     Reason = "UNAUTHENTICATED"
	PermissionDenied    Reason = "PERMISSION_DENIED"
	SourceForbidden     Reason = "SOURCE_FORBIDDEN"
	Reserved            Reason = "RESERVED"
	ConstraintViolation Reason = "CONSTRAINT_VIOLATION"
	AlignmentViolation  Reason = "ALIGNMENT_VIOLATION"
	RevisionConflict    Reason = "REVISION_CONFLICT"
	IdempotencyConflict Reason = "IDEMPOTENCY_CONFLICT"
	VersionConflict     Reason = "VERSION_CONFLICT"
	LastOwner           Reason = "LAST_OWNER"
	NotMember           Reason = "NOT_MEMBER"
	PositionGone        Reason = "POSITION_GONE"
	RevisionGone        Reason = "REVISION_GONE"
	BudgetExceeded      Reason = "BUDGET_EXCEEDED"
	RateLimited         Reason = "RATE_LIMITED"
	Overloaded          Reason = "OVERLOADED"
	Timeout             Reason = "TIMEOUT"
	OutcomeUnknown      Reason = "OUTCOME_UNKNOWN"

	resync         Reason = "RESYNC"
	serverShutdown Reason = "SERVER_SHUTDOWN"
	closed         Reason = "CLOSED" // the same, of a mailbox
	slowConsumer   Reason = "SLOW_CONSUMER"
)

// Error is the reason itself.
func (r Reason) Error() string { return string(r) }

// Error is what a server refused, and why.
type Error struct {
	Code    int    // of JSON-RPC; 0 for the client's own
	Status  int    // of HTTP, if it is not 200
	Reason  Reason // to rely on; may be "" of a server that is not koine
	Message string // for people; may change
	Field   string // the path of the part that is wrong
	Detail  string // what is wrong with it
	Hint    string // what to do about it
	// RetryAfter is how long to wait before it is tried again, 0 if that was not said.
	RetryAfter time.Duration
	// Position is where a stream that ended goes on; OldestPosition and
	// OldestSequence the first that there still are. "" and 0 if they were not said.
	Position       string
	OldestPosition string
	OldestSequence int64
	// Errors are those of GraphQL.
	Errors []GraphQLError
	// Data is all that came with it.
	Data json.RawMessage
}

// GraphQLError is an error in a query.
type GraphQLError struct {
	Message    string         `json:"message"`
	Path       []any          `json:"path,omitempty"`
	Extensions map[string]any `json:"extensions,omitempty"`
}

// Error is the message with what was given beside it.
func (e *Error) Error() string {
	text := e.Message
	for _, more := range []string{e.Field, e.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	for _, one := range e.Errors {
		if one.Message != e.Message {
			text += "; " + one.Message
		}
	}
	if e.Reason != "" {
		text += " (" + string(e.Reason) + ")"
	}
	if e.Hint != "" {
		text += ". " + e.Hint
	}
	return text
}

// Is tells whether the target is the error's Reason.
func (e *Error) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason == e.Reason
}

// wireError is an error as JSON-RPC has it.
type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (w *wireError) error(status int) *Error {
	e := &Error{Code: w.Code, Message: w.Message, Data: w.Data}
	if status != http.StatusOK {
		e.Status = status
	}
	var data struct {
		Reason         Reason
		Field          string
		Detail         string
		Hint           string
		RetryAfterMs   int64
		Position       string
		OldestPosition string
		OldestSequence int64
		Errors         []GraphQLError
	}
	// Data of another shape (a list, of base A2A) says nothing that is known here.
	if json.Unmarshal(w.Data, &data) == nil {
		e.Reason, e.Field, e.Detail, e.Hint = data.Reason, data.Field, data.Detail, data.Hint
		e.RetryAfter = time.Duration(data.RetryAfterMs) * time.Millisecond
		e.Position, e.OldestPosition, e.OldestSequence, e.Errors = data.Position, data.OldestPosition, data.OldestSequence, data.Errors
	}
	return e
}

// maxQuoted bounds what an error quotes of an answer.
const maxQuoted = 500

// refusal is the error of an answer with another HTTP status than 200.
func refusal(response *http.Response, body []byte) error {
	var answer struct {
		Error *wireError `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil || answer.Error.Message == "" {
		text := strings.TrimSpace(string(body[:min(len(body), maxQuoted)]))
		return &Error{Status: response.StatusCode, Message: fmt.Sprintf("the server answered %s: %s", response.Status, text), RetryAfter: backoff.Hint(response.Header)}
	}
	e := answer.Error.error(response.StatusCode)
	if e.RetryAfter == 0 {
		e.RetryAfter = backoff.Hint(response.Header)
	}
	return e
}

// passing tells whether the same request may succeed later: nothing is wrong with
// it, or nobody knows what became of it.
func passing(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // the connection
	}
	switch e.Reason {
	case RateLimited, Overloaded, Timeout, OutcomeUnknown, serverShutdown:
		return true
	case "":
		return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented
	}
	return false
}
