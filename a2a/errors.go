package a2a

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/internal/suggest"
	"koine/kg"
)

// The codes of JSON-RPC 2.0 (section 5.1), of A2A, of the knowledge graph extension
// (section 5), and of koine's own range, which JSON-RPC and A2A do not claim.
const (
	codeParse            = -32700
	codeInvalidRequest   = -32600
	codeMethodNotFound   = -32601
	codeInvalidParams    = -32602
	codeInternal         = -32603
	codeTaskNotFound     = -32001
	codeNotCancelable    = -32002
	codeNoPush           = -32003
	codeNoExtendedCard   = -32007
	codeUnsupported      = -32004
	codeContentType      = -32005
	codeVersion          = -32009
	codeQuery            = -32010
	codeUpdate           = -32011
	codeSubscription     = -32012
	codeAlignment        = -32013
	codeChannelNotFound  = -31101
	codePermissionDenied = -31102
	codeConflict         = -31103
	codeLimitExceeded    = -31104
	codeRateLimit        = -31105
	codeChannelStream    = -31106
	codeUnauthenticated  = -31401 // this and the next are the codes of a2a-go: A2A defines none
	codeUnauthorized     = -31403
)

// The reasons that the protocol adds to kg.Code.
const (
	reasonParse               = "PARSE_ERROR"
	reasonInvalidRequest      = "INVALID_REQUEST"
	reasonMethodNotFound      = "METHOD_NOT_FOUND"
	reasonLanguage            = "LANGUAGE_NOT_SUPPORTED"
	reasonInvalidSubscription = "INVALID_SUBSCRIPTION"
	reasonTooManyStreams      = "TOO_MANY_STREAMS"
	reasonSlowConsumer        = "SLOW_CONSUMER"
	reasonServerShutdown      = "SERVER_SHUTDOWN"
	reasonEventTooLarge       = "EVENT_TOO_LARGE"
)

// Error is a JSON-RPC error object. If its code is one of the standards, the message is
// fixed and the details have the problem.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`

	status     int           // HTTP status of its own; 0 for none
	retryAfter time.Duration // for the Retry-After header
	cause      error         // for the log
	hidden     bool          // the cause is for the log only
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// details is koine's error.data. Clients should rely on reason.
type details struct {
	Reason string `json:"reason"`
	Domain string `json:"domain"`
	// Cause refines a reason: ACCESS_CHANGED for RESYNC, and koine's own reason if A2A
	// has a more general one.
	Cause string `json:"cause,omitempty"`
	// Field is the invalid part of the params.
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// OldestPosition can be resumed from if the requested one cannot.
	OldestPosition string `json:"oldestPosition,omitempty"`
	// OldestSequence is the sequence of the oldest message in the channel.
	OldestSequence int64 `json:"oldestSequence,omitempty"`
	// Position is the position to resume from after this last event of a stream.
	Position     string          `json:"position,omitempty"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"`
	Supported    []string        `json:"supported,omitempty"`
	Errors       json.RawMessage `json:"errors,omitempty"` // errors of GraphQL
	RequestID    string          `json:"requestId,omitempty"`
	// Verification is the verdict on facts that were refused with their message.
	Verification string `json:"verificationStatus,omitempty"`

	// ProposalID is the proposal that holds a message, for CONTENT_HELD.
	ProposalID string `json:"proposalId,omitempty"`

	listed bool // encode in the form of base A2A
}

// newError returns an error with koine's details.
func newError(code int, message string, d details) *Error {
	d.Domain = "koine"
	return &Error{Code: code, Message: message, Data: d}
}

// withDetails returns a copy of the error with changed details.
func (e *Error) withDetails(change func(*details)) *Error {
	d, ok := e.Data.(details)
	if !ok {
		return e
	}
	change(&d)
	f := *e
	f.Data = d
	return &f
}

// withStatus returns a copy of the error with an HTTP status of its own.
func (e *Error) withStatus(status int) *Error {
	f := *e
	f.status = status
	return &f
}

func parseError(err error) *Error {
	return newError(codeParse, "Invalid JSON payload", details{Reason: reasonParse, Detail: err.Error()})
}

func invalidRequest(reason, detail, hint string) *Error {
	return newError(codeInvalidRequest, "Request payload validation error", details{Reason: reason, Detail: detail, Hint: hint})
}

// methodNotFound returns an error with the methods of the endpoint. Its details have
// the form of the method's family: an object for the extensions, a list for base A2A
// and unknown names.
func (h *Handler) methodNotFound(name string) *Error {
	d := details{Reason: reasonMethodNotFound, Supported: slices.Sorted(maps.Keys(h.table))}
	if meant := suggest.Name(name, d.Supported); meant != "" {
		d.Hint = "Did you mean " + meant + "?"
	}
	e := newError(codeMethodNotFound, "Method not found", d)
	if strings.HasPrefix(name, "knowledge/") || strings.HasPrefix(name, "channels/") {
		return e
	}
	return e.asListed()
}

// otherVersion returns the error for a method that A2A-Version excludes.
func otherVersion(method string, v version) *Error {
	return newError(codeMethodNotFound, "Method not found", details{
		Reason: reasonMethodNotFound, Detail: method + " belongs to A2A " + v.name, Hint: "Set A2A-Version to " + v.name + ", or omit it.",
	}).asListed()
}

func tooLarge(most int64) *Error {
	e := invalidRequest(string(kg.CodeLimitExceeded), "the body exceeds the limit of "+sizeOf(most),
		"Split the request; /data accepts RDF of any size.")
	return e.withStatus(http.StatusRequestEntityTooLarge)
}

func wrongContentType(header http.Header) *Error {
	got := quoteOrNothing(header.Get("Content-Type"))
	if encoding := header.Get("Content-Encoding"); encoding != "" {
		got += " encoded as " + quoteOrNothing(encoding)
	}
	e := newError(codeContentType, "Incompatible content types", details{Detail: "the content type must be application/json in UTF-8, not " + got})
	return e.asListed().withStatus(http.StatusUnsupportedMediaType)
}

func sizeOf(bytes int64) string {
	if bytes >= 1<<20 && bytes%(1<<20) == 0 {
		return strconv.FormatInt(bytes>>20, 10) + " MiB"
	}
	return strconv.FormatInt(bytes, 10) + " bytes"
}

func quoteOrNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return strconv.Quote(clipText(s))
}
