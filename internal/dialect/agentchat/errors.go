package agentchat

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"koine/internal/caller"
	"koine/internal/rest"
	"koine/kg"
)

// The codes of the protocol.
const (
	codeInvalid        = "INVALID"
	codeUnauthorized   = "UNAUTHORIZED"
	codeForbidden      = "FORBIDDEN"
	codeNotFound       = "NOT_FOUND"
	codeMethod         = "METHOD_NOT_ALLOWED"
	codeConflict       = "CONFLICT"
	codeRoomFull       = "ROOM_FULL"
	codeLastAdmin      = "LAST_ADMIN"
	codeTooLarge       = "TOO_LARGE"
	codeLimit          = "LIMIT_EXCEEDED"
	codeContentType    = "CONTENT_TYPE"
	codeRateLimited    = "RATE_LIMITED"
	codeHeld           = "CONTENT_HELD" // a rule holds the message until it is approved
	codeNotImplemented = "NOT_IMPLEMENTED"
	codeUnavailable    = "UNAVAILABLE"
	codeInternal       = "INTERNAL"
)

// answer is the code and the HTTP status of an error.
type answer struct {
	code   string
	status int
}

// errorTable has the answers to the errors of the domain.
var errorTable = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     {codeInvalid, http.StatusBadRequest},
		kg.ClassLimit:       {codeTooLarge, http.StatusRequestEntityTooLarge},
		kg.ClassNotFound:    {codeNotFound, http.StatusNotFound},
		kg.ClassDenied:      {codeForbidden, http.StatusForbidden},
		kg.ClassConflict:    {codeConflict, http.StatusConflict},
		kg.ClassRate:        {codeRateLimited, http.StatusTooManyRequests},
		kg.ClassUnavailable: {codeUnavailable, http.StatusServiceUnavailable},
	},
	Codes: map[kg.Code]answer{
		kg.CodeUnauthenticated: {codeUnauthorized, http.StatusUnauthorized},
		kg.CodeContentType:     {codeContentType, http.StatusUnsupportedMediaType},
		kg.CodeLastOwner:       {codeLastAdmin, http.StatusConflict},
		kg.CodeContentHeld:     {codeHeld, http.StatusForbidden},
		kg.CodeCursorGone:      {codeInvalid, http.StatusBadRequest},
		kg.CodePositionGone:    {codeInvalid, http.StatusBadRequest},
		kg.CodeResync:          {codeUnavailable, http.StatusServiceUnavailable},
		kg.CodeAccessChanged:   {codeUnavailable, http.StatusServiceUnavailable},
	},
}

// limitTable has the answers to kg.CodeLimitExceeded by the name of the bound.
var limitTable = map[string]answer{
	"channels": {codeLimit, http.StatusForbidden},
	"streams":  {codeLimit, http.StatusForbidden},
	"members":  {codeRoomFull, http.StatusConflict},
}

// fieldNames are the names of the domain's fields in this protocol.
var fieldNames = map[string]string{
	"channelId": "room_id", "principalId": "agent_id", "members": "members", "maxMembers": "max_members", "expectedVersion": "version",
	"parts": "content", "replyToId": "metadata.in_reply_to", "replyTo": "metadata.in_reply_to", "thread": "metadata.thread_id", "threadId": "metadata.thread_id",
	"tags": "metadata.tags", "format": "metadata.format", "contentType": "type", "metadataPatch": "metadata", "data.messageId": "message_id",
	"justification": "reason", "idempotencyKey": "Idempotency-Key", "sinceSequence": "after", "sinceMessageId": "after", "beforeSequence": "before", "beforeMessageId": "before",
	"overlap": "overlap_seconds", "from": "from", "to": "to", "pageToken": "cursor",
}

// words replaces the domain's words in messages by those of the protocol.
var words = strings.NewReplacer("channel", "room", "idempotencyKey", "Idempotency-Key")

// wireError is the body of every error, and the frame of one.
type wireError struct {
	Type         string `json:"type"`
	RequestID    rawID  `json:"request_id,omitempty"`
	Code         string `json:"code"`
	Message      string `json:"message"`
	RetryAfterMs int64  `json:"retry_after_ms,omitempty"`
	Field        string `json:"field,omitempty"`

	status int
}

// errorNotImplemented is the error of a parameter that the server does not have.
type errorNotImplemented struct{ field string }

func (e *errorNotImplemented) Error() string {
	return "search is off on this server; koine serve --search on turns it on"
}

func errUnauthorized() *kg.Error {
	return kg.Errorf(kg.CodeUnauthenticated, "authentication required: send the API key as Authorization: Bearer … or X-API-Key")
}

// errorOf converts an error and reports it to the audit trail. An unknown one is logged
// and answered as internal.
func (h *Handler) errorOf(who caller.Caller, err error) *wireError {
	out := &wireError{Type: frameError}
	var none *rest.NoRoute
	var later *errorNotImplemented
	switch {
	case errors.As(err, &none):
		out.Code, out.Message, out.status = codeNotFound, none.Error(), none.Status()
		if out.status == http.StatusMethodNotAllowed {
			out.Code = codeMethod
		}
		return out
	case errors.As(err, &later):
		out.Code, out.Message, out.Field, out.status = codeNotImplemented, later.Error(), later.field, http.StatusNotImplemented
		return out
	}
	e := kg.AsError(err)
	h.options.Refused(who, e.Code)
	a, ok := errorTable.Of(e.Code)
	if e.Code == kg.CodeLimitExceeded && limitTable[e.Limit].code != "" {
		a = limitTable[e.Limit]
	}
	if !ok {
		h.options.Logger.Error("call failed", "request", who.RequestID, "path", who.Path, "error", err)
		out.Code, out.Message, out.status = codeInternal, "an internal error", http.StatusInternalServerError
		return out
	}
	out.Code, out.Message, out.Field, out.status = a.code, words.Replace(e.Message), e.Field, a.status
	if e.Code == kg.CodeChannelNotFound {
		out.Message = "the room does not exist"
	}
	if name := fieldNames[e.Field]; name != "" {
		out.Field = name
	}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		out.RetryAfterMs = max(1, (e.RetryAfter + time.Millisecond - 1).Milliseconds())
		if e.RetryAfter == 0 {
			out.RetryAfterMs = 1000
		}
	}
	return out
}

// writeError answers a request with an error.
func writeError(w http.ResponseWriter, e *wireError) {
	rest.WriteError(w, e.status, rest.RetryAfter(e.status, time.Duration(e.RetryAfterMs)*time.Millisecond), e)
}
