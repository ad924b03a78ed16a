package a2a

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/internal/nearest"
	"koine/kg"
)

// The codes of JSON-RPC 2.0 (section 5.1), of A2A, of the knowledge graph
// extension (section 5), and of koine's own range, which lies outside what
// JSON-RPC and A2A claim.
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
	codeUnauthenticated  = -31401 // this and the next are those of a2a-go: A2A leaves them open
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

// Error is a JSON-RPC error object. Of those with a code of the standards the
// message is fixed and the details say what is wrong.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`

	status     int           // HTTP status where the error has one of its own; 0 otherwise
	retryAfter time.Duration // for the Retry-After header
	cause      error         // for the log
	hidden     bool          // the cause is for the log only
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// details is what koine puts into error.data: clients are told to rely on
// reason.
type details struct {
	Reason string `json:"reason"`
	Domain string `json:"domain"`
	// Cause tells more of a reason: ACCESS_CHANGED of RESYNC, and koine's own of what A2A
	// has a wider name for.
	Cause string `json:"cause,omitempty"`
	// Field is the part of the params that is wrong.
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// OldestPosition can be resumed from, where the one asked for cannot.
	OldestPosition string `json:"oldestPosition,omitempty"`
	// OldestSequence is that of the oldest message that is left in a channel.
	OldestSequence int64 `json:"oldestSequence,omitempty"`
	// Position to resume from after this last event of a stream.
	Position     string          `json:"position,omitempty"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"`
	Supported    []string        `json:"supported,omitempty"`
	Errors       json.RawMessage `json:"errors,omitempty"` // those of GraphQL
	RequestID    string          `json:"requestId,omitempty"`
	// Verification is that of facts that were refused with their message.
	Verification string `json:"verificationStatus,omitempty"`

	listed bool // they are written as base A2A has them
}

// newError makes an error with koine's details.
func newError(code int, message string, d details) *Error {
	d.Domain = "koine"
	return &Error{Code: code, Message: message, Data: d}
}

// with returns the error with its details changed.
func (e *Error) with(change func(*details)) *Error {
	d, ok := e.Data.(details)
	if !ok {
		return e
	}
	change(&d)
	f := *e
	f.Data = d
	return &f
}

// at returns the error with an HTTP status of its own.
func (e *Error) at(status int) *Error {
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

// methodNotFound lists the methods that the endpoint has. The details have the form that
// the family of the method has: of the extensions an object, of base A2A, and of names
// that are of neither, a list.
func (h *Handler) methodNotFound(name string) *Error {
	d := details{Reason: reasonMethodNotFound, Supported: slices.Sorted(maps.Keys(h.table))}
	if meant := nearest.Name(name, d.Supported); meant != "" {
		d.Hint = "Did you mean " + meant + "?"
	}
	e := newError(codeMethodNotFound, "Method not found", d)
	if strings.HasPrefix(name, "knowledge/") || strings.HasPrefix(name, "channels/") {
		return e
	}
	return e.listed()
}

// otherVersion refuses a method that A2A-Version excludes.
func otherVersion(method string, v version) *Error {
	return newError(codeMethodNotFound, "Method not found", details{
		Reason: reasonMethodNotFound, Detail: method + " is of A2A " + v.name, Hint: "Say " + v.name + " in A2A-Version, or leave it out.",
	}).listed()
}

func tooLarge(most int64) *Error {
	e := invalidRequest(string(kg.CodeLimitExceeded), "the body is larger than the "+sizeOf(most)+" that are taken",
		"Send less at a time; /data takes RDF of any size.")
	return e.at(http.StatusRequestEntityTooLarge)
}

func wrongContentType(header http.Header) *Error {
	got := quoteOrNothing(header.Get("Content-Type"))
	if encoding := header.Get("Content-Encoding"); encoding != "" {
		got += " encoded as " + quoteOrNothing(encoding)
	}
	e := newError(codeContentType, "Incompatible content types", details{Detail: "a request is application/json in UTF-8, not " + got})
	return e.listed().at(http.StatusUnsupportedMediaType)
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
	return strconv.Quote(clip(s))
}
