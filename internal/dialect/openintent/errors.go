package openintent

import (
	"errors"
	"net/http"
	"strings"

	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/rest"
	"koine/kg"
)

// answer is the HTTP status of an error, and the text that replaces the domain's, "" for
// none. All answers with status 409 have a text of their own: the SDK takes a body with the
// word "lease" for a conflict of leases, and the domain's texts may repeat names.
type answer struct {
	status int
	text   string
}

var errorTable = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     {http.StatusUnprocessableEntity, ""},
		kg.ClassLimit:       {http.StatusUnprocessableEntity, ""},
		kg.ClassNotFound:    {http.StatusNotFound, "Not found"},
		kg.ClassDenied:      {http.StatusForbidden, ""},
		kg.ClassConflict:    {http.StatusConflict, "Conflict"},
		kg.ClassRate:        {http.StatusTooManyRequests, ""},
		kg.ClassUnavailable: {http.StatusServiceUnavailable, ""},
	},
	Codes: map[kg.Code]answer{
		kg.CodeUnauthenticated:     {http.StatusUnauthorized, "Invalid or missing API key"},
		kg.CodeChannelNotFound:     {http.StatusNotFound, "Channel not found"},
		kg.CodeScopeNotFound:       {http.StatusNotFound, "Intent not found"},
		kg.CodeNoRecipient:         {http.StatusUnprocessableEntity, ""},
		kg.CodeNameTaken:           {http.StatusConflict, "The name is taken in this intent"},
		kg.CodeChannelClosed:       {http.StatusConflict, "Channel is closed"},
		kg.CodeScopeEnded:          {http.StatusConflict, "Intent has ended"},
		kg.CodeVersionConflict:     {http.StatusConflict, "Version conflict"},
		kg.CodeLastOwner:           {http.StatusConflict, "The creator stays a member of the channel"},
		kg.CodeIdempotencyConflict: {http.StatusConflict, "The idempotency key was used for another request"},
		kg.CodeMessageExpired:      {http.StatusGone, ""},
		kg.CodeContentType:         {http.StatusUnsupportedMediaType, ""},
		kg.CodeCursorGone:          {http.StatusUnprocessableEntity, ""},
		kg.CodePositionGone:        {http.StatusUnprocessableEntity, ""},
		kg.CodeResync:              {http.StatusServiceUnavailable, ""},
		kg.CodeAccessChanged:       {http.StatusServiceUnavailable, ""},
	},
}

// sizeLimits are the names of bounds on sizes, which answer with status 413.
var sizeLimits = map[string]bool{"": true, "bytes": true, "messageBytes": true, "metadata": true, "literal": true, kg.LimitCommitBytes: true}

// fieldNames are the names of the domain's fields in this protocol.
var fieldNames = map[string]string{
	"principalId": "members", "parts": "payload", "expiresAt": "expires_at", "correlationId": "correlation_id", "expireAfter": "ttl_seconds",
	"keepMessages": "max_messages", "memberPolicy": "member_policy", "interaction": "message_type", "externalId": "task_id", "sinceMessageId": "since",
	"agent": "agent_id", "level": "permission", "grantId": "entry_id", "idempotencyKey": "Idempotency-Key", "parent": "parent_intent_id", "dependsOn": "depends_on",
	"duration": "duration_seconds", "type": "event_type", "recipient": "to", "messageIds": "message_id",
}

// words replaces the domain's words in messages by those of the protocol.
var words = strings.NewReplacer("agent://", "", "correlationId", "correlation_id", "expiresAt", "expires_at", "scope", "intent")

// wireError is the body of every error: one form for the SDK, which reads message, errors,
// current_version and existing_lease, and for clients of FastAPI, which read detail.
type wireError struct {
	Detail         any    `json:"detail"` // the text, or problems with status 422
	Message        string `json:"message"`
	Code           string `json:"code"`
	Field          string `json:"field,omitempty"`
	CurrentVersion int64  `json:"current_version,omitempty"`
	ExistingLease  any    `json:"existing_lease,omitempty"`

	status, retry int
	kind          string // the type of the problem
	query         bool   // the field is a parameter of the query
}

// problem is an element of detail in an answer with status 422, in the form of FastAPI.
type problem struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

func (e *wireError) Error() string { return e.Message }

// errMalformed is the error for a request that cannot be read at all.
func errMalformed(message string) *wireError {
	return &wireError{Message: message, Code: string(kg.CodeInvalid), status: http.StatusBadRequest}
}

// errField is the error for a wrong member of a body.
func errField(field, message, kind string) *wireError {
	return &wireError{Message: message, Code: string(kg.CodeInvalid), Field: field, status: http.StatusUnprocessableEntity, kind: kind}
}

// errRequired is the error for an absent member of a body.
func errRequired(field string) *wireError { return errField(field, "Field required", "missing") }

// errNotFound is the error of an object that does not exist, or is not visible.
func errNotFound(what string) *wireError {
	return &wireError{Message: what + " not found", Code: string(kg.CodeNotFound), status: http.StatusNotFound}
}

// errorOf converts the error of a call and reports it to the audit trail. It logs internal
// errors, once.
func (h *Handler) errorOf(who caller.Caller, err error) *wireError {
	var none *rest.NoRoute
	var own *wireError
	switch {
	case errors.As(err, &none):
		own = &wireError{Message: "Not Found", Code: string(kg.CodeNotFound), status: none.Status()}
		if own.status != http.StatusNotFound {
			own.Message, own.Code = none.Error(), "METHOD_NOT_ALLOWED"
		}
	case errors.As(err, &own):
		h.options.Refused(who, kg.Code(own.Code))
	default:
		own = h.domainError(who, err)
	}
	return own.withDetail()
}

// domainError converts an error of the domain.
func (h *Handler) domainError(who caller.Caller, err error) *wireError {
	e := kg.AsError(err)
	h.options.Refused(who, e.Code)
	var conflict *intents.VersionError
	if errors.As(err, &conflict) {
		return &wireError{Message: "Version conflict", Code: string(e.Code), CurrentVersion: conflict.Current, status: http.StatusConflict}
	}
	a, ok := errorTable.Of(e.Code)
	if !ok {
		h.options.Logger.Error("call failed", "request", who.RequestID, "path", who.Path, "error", err)
		return &wireError{Message: "an internal error", Code: string(kg.CodeInternal), status: http.StatusInternalServerError}
	}
	if e.Code == kg.CodeLimitExceeded && sizeLimits[e.Limit] {
		a.status = http.StatusRequestEntityTooLarge
	}
	out := &wireError{Message: words.Replace(e.Message), Code: string(e.Code), Field: e.Field, status: a.status, kind: "value_error"}
	out.retry = rest.RetryAfter(a.status, e.RetryAfter)
	if name := fieldNames[e.Field]; name != "" {
		out.Field = name
	}
	if a.text != "" {
		out.Message = a.text
	}
	if a.status == http.StatusNotFound || a.status == http.StatusConflict {
		out.Field = ""
	}
	return out
}

// withDetail sets detail from the other members.
func (e *wireError) withDetail() *wireError {
	if e.status != http.StatusUnprocessableEntity {
		e.Detail = e.Message
		return e
	}
	loc := []string{"body"}
	if e.query {
		loc[0] = "query"
	}
	if e.Field != "" {
		loc = append(loc, e.Field)
	}
	e.Detail = []problem{{loc, e.Message, e.kind}}
	return e
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, e *wireError) { rest.WriteError(w, e.status, e.retry, e) }
