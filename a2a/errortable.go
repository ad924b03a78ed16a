package a2a

import (
	"context"
	"errors"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// family is a group of methods that share the code of their own failures.
type family struct{ own int }

// The families of the knowledge graph extension (section 5).
var (
	queries       = family{codeQuery}
	updates       = family{codeUpdate}
	subscriptions = family{codeSubscription}
)

// own in a row stands for the family's own code.
const own = 0

// errorTable says what a kg.Code becomes: the JSON-RPC code; the HTTP status
// of a stream that could not be established; and that of any other answer, 200
// unless WIRE §2 makes an exception. A code without a row is an internal error.
var errorTable = []struct {
	code   kg.Code
	rpc    int
	stream int
	unary  int
}{
	{kg.CodeInvalid, codeInvalidParams, http.StatusBadRequest, http.StatusOK},
	{kg.CodeLimitExceeded, codeInvalidParams, http.StatusBadRequest, http.StatusOK},
	{kg.CodeBudgetExceeded, codeInvalidParams, http.StatusBadRequest, http.StatusOK},
	{kg.CodeRevisionAhead, codeInvalidParams, http.StatusBadRequest, http.StatusOK},
	{kg.CodeNotFound, own, http.StatusNotFound, http.StatusOK},
	{kg.CodeGraphNotFound, own, http.StatusNotFound, http.StatusOK},
	{kg.CodePermissionDenied, own, http.StatusForbidden, http.StatusOK},
	{kg.CodeSourceForbidden, own, http.StatusForbidden, http.StatusOK},
	{kg.CodeReserved, own, http.StatusForbidden, http.StatusOK},
	{kg.CodeConstraintViolation, codeAlignment, http.StatusForbidden, http.StatusOK},
	{kg.CodeAlignmentViolation, codeAlignment, http.StatusForbidden, http.StatusOK},
	{kg.CodeJudgeLimit, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeProposalClosed, own, http.StatusConflict, http.StatusOK},
	{kg.CodeRevisionConflict, own, http.StatusConflict, http.StatusOK},
	{kg.CodeIdempotencyConflict, own, http.StatusConflict, http.StatusOK},
	{kg.CodePositionGone, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeRevisionGone, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeCursorForeign, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeCursorGone, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeResync, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeAccessChanged, own, http.StatusBadRequest, http.StatusOK},
	{kg.CodeRateLimited, codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
	{kg.CodeOverloaded, codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
	{kg.CodeTimeout, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeDiskFull, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeReadOnly, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeLogDamaged, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeOutcomeUnknown, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeClosed, own, http.StatusServiceUnavailable, http.StatusOK},
	{kg.CodeUnauthenticated, own, http.StatusUnauthorized, http.StatusUnauthorized},
}

// defaultRetryAfter is when to come back to a server that is overloaded and
// does not say.
const defaultRetryAfter = time.Second

// rename is for codes that clients know by another reason.
var rename = map[kg.Code]string{kg.CodeClosed: reasonServerShutdown, kg.CodeAccessChanged: string(kg.CodeResync)}

// cause is for codes of which the reason that clients know them by says too
// little.
var cause = map[kg.Code]string{kg.CodeAccessChanged: string(kg.CodeAccessChanged)}

// errorOf is what a failed call becomes on the wire. Fields of the error begin
// in the params.
func (h *Handler) errorOf(ctx context.Context, f family, stream bool, err error) *Error {
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	e := kg.AsError(err)
	if e.Code == kg.CodeInternal && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		e = kg.Errorf(kg.CodeTimeout, "the request was given up") // nobody's fault
	}
	if (e.Code == kg.CodeOverloaded || e.Code == kg.CodeRateLimited) && e.RetryAfter == 0 { // the answer always says when
		patient := *e
		patient.RetryAfter = defaultRetryAfter
		e = &patient
	}
	h.options.Refused(ctx, e.Code)
	for _, row := range errorTable {
		if row.code != e.Code {
			continue
		}
		rpc, message, detail := row.rpc, e.Message, ""
		switch rpc {
		case own:
			rpc = f.own
		case codeInvalidParams:
			message, detail = "Invalid parameters", e.Message
		}
		out := newError(rpc, message, details{Reason: string(e.Code), Field: e.Field, Detail: detail, Hint: e.Hint,
			RetryAfterMs: e.RetryAfter.Milliseconds()})
		out.status, out.retryAfter, out.cause = row.unary, e.RetryAfter, err
		if stream {
			out.status = row.stream
		}
		return out.with(func(d *details) {
			if name, ok := rename[e.Code]; ok {
				d.Reason = name
			}
			d.Cause, d.OldestPosition = cause[e.Code], h.oldest(e)
		})
	}
	return internalError(ctx, err, stream)
}

// oldest is the position to offer to a reader whose own is gone.
func (h *Handler) oldest(e *kg.Error) string {
	switch {
	case e.Code != kg.CodePositionGone && e.Code != kg.CodeResync && e.Code != kg.CodeAccessChanged:
		return ""
	case e.Oldest != nil:
		return h.store.FormatPosition(*e.Oldest)
	}
	return h.store.FormatPosition(h.store.Oldest())
}

// internalError hides what happened: whoever sends it logs the cause, once.
func internalError(ctx context.Context, cause error, stream bool) *Error {
	e := newError(codeInternal, "Internal error", details{Reason: string(kg.CodeInternal),
		RequestID: caller.From(ctx).RequestID, Hint: "It was logged under the request id."})
	e.cause = cause
	if stream {
		e.status = http.StatusInternalServerError
	}
	return e
}
