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

// errorRow maps a kg.Code to a code of the protocol and an HTTP status.
type errorRow struct {
	code   kg.Code
	name   string
	status int
}

// errorTable lists all mapped codes. A code without a row is an internal error.
var errorTable = []errorRow{
	{kg.CodeAgentNotFound, codeAgent, http.StatusNotFound},
	{kg.CodeTaskNotFound, codeTask, http.StatusNotFound},
	{kg.CodeNotFound, codeMessage, http.StatusNotFound},
	{kg.CodeTaskEnded, codeTaskEnded, http.StatusConflict},
	{kg.CodeVersionConflict, codeConflict, http.StatusConflict},
	{kg.CodeIdempotencyConflict, codeConflict, http.StatusConflict},
	{kg.CodeInvalid, codeRequest, http.StatusBadRequest},
	{kg.CodeUnknownPrefix, codeRequest, http.StatusBadRequest},
	{kg.CodeLimitExceeded, codeRequest, http.StatusBadRequest},
	{kg.CodeJudgeLimit, codeRequest, http.StatusBadRequest},
	{kg.CodeContentType, codeRequest, http.StatusUnsupportedMediaType},
	{kg.CodeCursorForeign, codeRequest, http.StatusBadRequest},
	{kg.CodeCursorGone, codeRequest, http.StatusBadRequest},
	{kg.CodePositionGone, codeRequest, http.StatusBadRequest},
	{kg.CodeUnauthenticated, codeAuthentication, http.StatusUnauthorized},
	{kg.CodePermissionDenied, codeAuthorization, http.StatusForbidden},
	{kg.CodeSourceForbidden, codeAuthorization, http.StatusForbidden},
	{kg.CodeReserved, codeAuthorization, http.StatusForbidden},
	{kg.CodeConstraintViolation, codeAuthorization, http.StatusForbidden},
	{kg.CodeAlignmentViolation, codeAuthorization, http.StatusForbidden},
	{kg.CodeRateLimited, codeRate, http.StatusTooManyRequests},
	{kg.CodeOverloaded, codeOverloaded, http.StatusTooManyRequests},
	{kg.CodeTimeout, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeDiskFull, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeReadOnly, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeLogDamaged, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeOutcomeUnknown, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeClosed, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeResync, codeOverloaded, http.StatusServiceUnavailable},
	{kg.CodeAccessChanged, codeOverloaded, http.StatusServiceUnavailable},
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
	for _, row := range errorTable {
		if row.code != e.Code {
			continue
		}
		out := &wireError{Code: row.name, Message: e.Message, status: row.status, retry: rest.RetryAfter(row.status, e.RetryAfter)}
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
