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

// Reason is a stable error code. It is an error itself, so that errors.Is matches it
// against an *Error. The constants are the codes that programs handle most often;
// docs/reference/errors.md lists all.
type Reason string

// Reasons of errors made by the client.
const (
	CapabilityMissing Reason = "CAPABILITY_MISSING" // the agent card does not announce a required capability
	Rejected          Reason = "REJECTED"           // validation rejected the update
	Unanswered        Reason = "UNANSWERED"         // no response to Ask arrived in time
)

// Reasons of errors from a server.
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
	ContentHeld         Reason = "CONTENT_HELD" // the message waits for a review: Error.ProposalID
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
	closed         Reason = "CLOSED" // SERVER_SHUTDOWN of a mailbox
	slowConsumer   Reason = "SLOW_CONSUMER"
)

// Error returns the reason.
func (r Reason) Error() string { return string(r) }

// Error is an error response of a server, or an error of the client with a Reason.
type Error struct {
	Code    int    // the JSON-RPC code; 0 if the client made the error
	Status  int    // the HTTP status, if it is not 2xx
	Reason  Reason // stable; may be "" from servers other than koine
	Message string // for people; may change
	Field   string // the path of the invalid part of the request
	Detail  string // the reason why that part is invalid
	Hint    string // a remedy
	// RetryAfter is the wait that the server asks for, or 0.
	RetryAfter time.Duration
	// Position is the position to resume an ended stream from. OldestPosition and
	// OldestSequence are the oldest ones that are still available. They are "" and 0 if
	// the server sent none.
	Position       string
	OldestPosition string
	OldestSequence int64
	// ProposalID is the proposal that holds the message, for ContentHeld.
	ProposalID string
	// Errors are the GraphQL errors of the response.
	Errors []GraphQLError
	// Data is the data of the error as the server sent it.
	Data json.RawMessage
}

// Error returns the message with field, detail, GraphQL errors, reason and hint.
func (e *Error) Error() string {
	text, field, detail := e.Message, e.Field, e.Detail
	last := field[strings.LastIndexByte(field, '.')+1:]
	if rest, named := strings.CutPrefix(detail, last+" "); named && last != "" { // the detail begins with the field
		field, detail = "", e.Field+" "+rest
	}
	for _, more := range []string{field, detail} {
		if more != "" {
			text += ": " + more
		}
	}
	for _, graphqlErr := range e.Errors {
		if graphqlErr.Message != e.Message {
			text += "; " + graphqlErr.Error()
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

// Is reports whether the target is the error's Reason.
func (e *Error) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason == e.Reason
}

// GraphQLError is an error of a whole operation or of one field.
type GraphQLError struct {
	Message    string         `json:"message"`
	Path       []any          `json:"path,omitempty"` // of the failed field
	Extensions map[string]any `json:"extensions,omitempty"`
}

// Reason returns the error's code, or "" if the server sent none.
func (g *GraphQLError) Reason() Reason { return Reason(g.extensionText("code")) }

func (g *GraphQLError) extensionText(name string) string {
	text, _ := g.Extensions[name].(string) // a value of another type counts as absent
	return text
}

// Error returns the path of the field and the message.
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

// isTransient reports whether the same request may succeed later: the failure is temporary,
// or the outcome is unknown.
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
