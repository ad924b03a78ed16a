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

// statuses maps each kg.Code, which is also the code on the wire, to an HTTP status.
var statuses = kg.Answers[int]{
	Classes: map[kg.Class]int{
		kg.ClassInvalid:     http.StatusBadRequest,
		kg.ClassLimit:       http.StatusBadRequest,
		kg.ClassNotFound:    http.StatusNotFound,
		kg.ClassDenied:      http.StatusForbidden,
		kg.ClassConflict:    http.StatusConflict,
		kg.ClassRate:        http.StatusTooManyRequests,
		kg.ClassUnavailable: http.StatusServiceUnavailable,
	},
	Codes: map[kg.Code]int{
		kg.CodeContentType:     http.StatusUnsupportedMediaType,
		kg.CodeUnauthenticated: http.StatusUnauthorized,
		kg.CodePositionGone:    http.StatusBadRequest,
		kg.CodeResync:          http.StatusServiceUnavailable,
		kg.CodeAccessChanged:   http.StatusServiceUnavailable,
	},
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
	if status, ok := statuses.Of(e.Code); ok {
		return &wireError{
			Code: string(e.Code), Message: e.Message, Details: details{Field: e.Field, Hint: e.Hint}, status: status, retry: rest.RetryAfter(status, e.RetryAfter),
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
