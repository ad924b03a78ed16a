package hub

import (
	"context"
	"errors"
	"net/http"

	"koine/internal/caller"
	"koine/internal/rest"
	"koine/kg"
)

// The codes of errors before any call.
const (
	codeMethod = "METHOD_NOT_ALLOWED"
	codePath   = "PATH_NOT_FOUND"
)

// The codes with which a mailbox ends, beside those of the domain.
const (
	codeShutdown = "SERVER_SHUTDOWN"
	codeSlow     = "SLOW_CONSUMER"
)

// errorRow maps a kg.Code, which is also the code on the wire, to an HTTP status.
type errorRow struct {
	code   kg.Code
	status int
}

// errorTable lists all mapped codes. A code without a row is an internal error.
var errorTable = []errorRow{
	{kg.CodeAgentNotFound, http.StatusNotFound},
	{kg.CodeTaskNotFound, http.StatusNotFound},
	{kg.CodeNotFound, http.StatusNotFound},
	{kg.CodeTaskEnded, http.StatusConflict},
	{kg.CodeVersionConflict, http.StatusConflict},
	{kg.CodeIdempotencyConflict, http.StatusConflict},
	{kg.CodeContentType, http.StatusUnsupportedMediaType},
	{kg.CodeInvalid, http.StatusBadRequest},
	{kg.CodeUnknownPrefix, http.StatusBadRequest},
	{kg.CodeLimitExceeded, http.StatusBadRequest},
	{kg.CodeJudgeLimit, http.StatusBadRequest},
	{kg.CodePositionGone, http.StatusBadRequest},
	{kg.CodeUnauthenticated, http.StatusUnauthorized},
	{kg.CodePermissionDenied, http.StatusForbidden},
	{kg.CodeSourceForbidden, http.StatusForbidden},
	{kg.CodeReserved, http.StatusForbidden},
	{kg.CodeConstraintViolation, http.StatusForbidden},
	{kg.CodeAlignmentViolation, http.StatusForbidden},
	{kg.CodeRateLimited, http.StatusTooManyRequests},
	{kg.CodeOverloaded, http.StatusTooManyRequests},
	{kg.CodeTimeout, http.StatusServiceUnavailable},
	{kg.CodeDiskFull, http.StatusServiceUnavailable},
	{kg.CodeReadOnly, http.StatusServiceUnavailable},
	{kg.CodeLogDamaged, http.StatusServiceUnavailable},
	{kg.CodeOutcomeUnknown, http.StatusServiceUnavailable},
	{kg.CodeClosed, http.StatusServiceUnavailable},
	{kg.CodeResync, http.StatusServiceUnavailable},
	{kg.CodeAccessChanged, http.StatusServiceUnavailable},
}

// wireError is the error object.
type wireError struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Details details `json:"details,omitzero"`

	status int
	retry  int // seconds
}

type details struct {
	Field     string `json:"field,omitempty"`
	Hint      string `json:"hint,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}

// wireFailure is the body of an error answer.
type wireFailure struct {
	Error *wireError `json:"error"`
}

// errorOf converts the error of a call. It logs internal errors, once.
func (h *Handler) errorOf(ctx context.Context, err error) *wireError {
	var none *rest.NoRoute
	if errors.As(err, &none) {
		out := &wireError{Code: codePath, Message: none.Error(), status: none.Status()}
		if out.status == http.StatusMethodNotAllowed {
			out.Code = codeMethod
		}
		return out
	}
	e := kg.AsError(err)
	h.options.Refused(ctx, e.Code)
	for _, row := range errorTable {
		if row.code != e.Code {
			continue
		}
		return &wireError{
			Code: string(e.Code), Message: e.Message, Details: details{Field: e.Field, Hint: e.Hint}, status: row.status, retry: rest.RetryAfter(row.status, e.RetryAfter),
		}
	}
	who := caller.From(ctx)
	h.options.Logger.Error("call failed", "request", who.RequestID, "path", who.Path, "error", err)
	return &wireError{
		Code: string(kg.CodeInternal), Message: "an internal error", status: http.StatusInternalServerError,
		Details: details{RequestID: who.RequestID, Hint: "The server's log has the details under the request id."},
	}
}

// writeError answers with an error.
func (h *Handler) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := h.errorOf(r.Context(), err)
	rest.WriteError(w, e.status, e.retry, wireFailure{e})
}
