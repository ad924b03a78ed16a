package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Reason says why something was refused. It is an error, so that errors.Is finds
// it in an *Error. Those below are the ones that programs mind most; docs/reference/errors.md
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
	Status  int    // of HTTP, if it was no success
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
			text += "; " + one.Error()
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

// GraphQLError is an error in a query, or in a part of its answer.
type GraphQLError struct {
	Message    string         `json:"message"`
	Path       []any          `json:"path,omitempty"` // of the field that could not be given
	Extensions map[string]any `json:"extensions,omitempty"`
}

// Reason is why, "" if the server did not say.
func (g *GraphQLError) Reason() Reason { return Reason(g.extensionText("code")) }

func (g *GraphQLError) extensionText(name string) string {
	text, _ := g.Extensions[name].(string) // what is no text is none
	return text
}

// Error is where it was, and the message.
func (g *GraphQLError) Error() string {
	var path []string
	for _, step := range g.Path {
		path = append(path, fmt.Sprint(step))
	}
	if len(path) == 0 {
		return g.Message
	}
	return strings.Join(path, ".") + ": " + g.Message
}

// isTransient tells whether the same request may succeed later: nothing is wrong with
// it, or nobody knows what became of it.
func isTransient(err error) bool {
	var e *Error
	if !errors.As(err, &e) { // the connection
		return !errors.As(err, new(*tls.CertificateVerificationError))
	}
	switch e.Reason {
	case RateLimited, Overloaded, Timeout, OutcomeUnknown, serverShutdown:
		return true
	case "":
		return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented
	}
	return false
}
