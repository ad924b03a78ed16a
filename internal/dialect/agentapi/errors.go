package agentapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/kg"
)

// The codes of the protocol (a2a-rest, "Error Handling").
const (
	codeAgent          = "AGENT_NOT_FOUND"
	codeTask           = "TASK_NOT_FOUND"
	codeRequest        = "INVALID_REQUEST"
	codeAuthentication = "AUTHENTICATION_ERROR"
	codeAuthorization  = "AUTHORIZATION_ERROR"
	codeExecution      = "AGENT_EXECUTION_ERROR"
	codeInternal       = "INTERNAL_SERVER_ERROR"
	// Codes that koine adds for errors without a code of the protocol.
	codeMessage    = "MESSAGE_NOT_FOUND"
	codeTaskEnded  = "TASK_ENDED"
	codeConflict   = "CONFLICT"
	codeRate       = "RATE_LIMITED"
	codeOverloaded = "UNAVAILABLE"
	codeMethod     = "METHOD_NOT_ALLOWED"
	codePath       = "NOT_FOUND"
)

// answer is a code of the protocol and an HTTP status.
type answer struct {
	code   string
	status int
}

var errorTable = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     {codeRequest, http.StatusBadRequest},
		kg.ClassLimit:       {codeRequest, http.StatusBadRequest},
		kg.ClassNotFound:    {codePath, http.StatusNotFound},
		kg.ClassDenied:      {codeAuthorization, http.StatusForbidden},
		kg.ClassConflict:    {codeConflict, http.StatusConflict},
		kg.ClassRate:        {codeOverloaded, http.StatusTooManyRequests},
		kg.ClassUnavailable: {codeOverloaded, http.StatusServiceUnavailable},
	},
	Codes: map[kg.Code]answer{
		kg.CodeAgentNotFound:   {codeAgent, http.StatusNotFound},
		kg.CodeTaskNotFound:    {codeTask, http.StatusNotFound},
		kg.CodeNotFound:        {codeMessage, http.StatusNotFound},
		kg.CodeTaskEnded:       {codeTaskEnded, http.StatusConflict},
		kg.CodeContentType:     {codeRequest, http.StatusUnsupportedMediaType},
		kg.CodeCursorGone:      {codeRequest, http.StatusBadRequest},
		kg.CodePositionGone:    {codeRequest, http.StatusBadRequest},
		kg.CodeUnauthenticated: {codeAuthentication, http.StatusUnauthorized},
		kg.CodeRateLimited:     {codeRate, http.StatusTooManyRequests},
		kg.CodeResync:          {codeOverloaded, http.StatusServiceUnavailable},
		kg.CodeAccessChanged:   {codeOverloaded, http.StatusServiceUnavailable},
	},
}

// wireError is the error object.
type wireError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`

	status int
	retry  int // seconds
}

type details struct {
	Field     string `json:"field,omitempty"`
	Hint      string `json:"hint,omitempty"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}

// errorOf converts the error of a call. It logs internal errors, once.
func (h *Handler) errorOf(who caller.Caller, err error) *wireError {
	var none *rest.NoRoute
	if errors.As(err, &none) {
		out := &wireError{Code: codePath, Message: none.Error(), status: none.Status()}
		if out.status == http.StatusMethodNotAllowed {
			out.Code = codeMethod
		}
		return out
	}
	e := kg.AsError(err)
	h.options.Refused(who, e.Code)
	if a, ok := errorTable.Of(e.Code); ok {
		out := &wireError{Code: a.code, Message: e.Message, status: a.status, retry: rest.RetryAfter(a.status, e.RetryAfter)}
		field := e.Field
		if field == "to" {
			field = "agentId" // the name in this protocol
		}
		return out.withDetails(details{Field: field, Hint: e.Hint, Reason: string(e.Code)})
	}
	h.options.Logger.Error("call failed", "request", who.RequestID, "path", who.Path, "error", err)
	out := &wireError{Code: codeInternal, Message: "an internal error", status: http.StatusInternalServerError}
	return out.withDetails(details{RequestID: who.RequestID, Hint: "The server's log has the details under the request id."})
}

func (e *wireError) withDetails(d details) *wireError {
	e.Details = plainjson.MustEncode(d)
	return e
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, e *wireError) {
	rest.WriteError(w, e.status, e.retry, wireFailure{e})
}

// wireFailure is the body of an error answer.
type wireFailure struct {
	Error *wireError `json:"error"`
}
