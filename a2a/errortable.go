package a2a

import (
	"context"
	"errors"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// family is a group of methods with a code for their own failures, and a table for all
// others.
type family struct {
	own   int
	table kg.Answers[answer]
	// log means that positions are those of the log; otherwise they are sequences, from
	// which a stream can always resume.
	log bool
	// listed means that details are a list, as in base A2A.
	listed bool
}

// convert converts an error to the form of the family.
func (f family) convert(e *Error) *Error {
	if f.listed {
		return e.asListed()
	}
	return e
}

// The families: those of the knowledge graph extension (section 5), and those of the
// channels extension (section 9), where an error is either in its list, or ends a
// stream, or is internal.
var (
	queries        = family{own: codeQuery, table: errorTable, log: true}
	updates        = family{own: codeUpdate, table: errorTable, log: true}
	subscriptions  = family{own: codeSubscription, table: errorTable, log: true}
	channelCalls   = family{own: codeInternal, table: channelErrors}
	channelStreams = family{own: codeChannelStream, table: channelErrors}
)

// own in an answer stands for the family's own code.
const own = 0

// answer is the JSON-RPC code for a kg.Code, the HTTP status of a stream that could not be
// established, and that of any other answer: 200 unless docs/reference/json-rpc.md makes an exception.
type answer struct{ rpc, stream, unary int }

// errorTable is the table of knowledge/*.
var errorTable = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     {codeInvalidParams, http.StatusBadRequest, http.StatusOK},
		kg.ClassLimit:       {codeInvalidParams, http.StatusBadRequest, http.StatusOK},
		kg.ClassNotFound:    {own, http.StatusNotFound, http.StatusOK},
		kg.ClassDenied:      {own, http.StatusForbidden, http.StatusOK},
		kg.ClassConflict:    {own, http.StatusConflict, http.StatusOK},
		kg.ClassRate:        {codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
		kg.ClassUnavailable: {own, http.StatusServiceUnavailable, http.StatusOK},
	},
	Codes: map[kg.Code]answer{
		kg.CodeUnauthenticated:     {own, http.StatusUnauthorized, http.StatusUnauthorized},
		kg.CodeConstraintViolation: {codeAlignment, http.StatusForbidden, http.StatusOK},
		kg.CodeAlignmentViolation:  {codeAlignment, http.StatusForbidden, http.StatusOK},
		kg.CodeContentType:         {own, http.StatusUnsupportedMediaType, http.StatusOK},
		kg.CodeJudgeLimit:          ownBadRequest,
		kg.CodeCursorForeign:       ownBadRequest,
		kg.CodeCursorGone:          ownBadRequest,
		kg.CodePositionGone:        ownBadRequest,
		kg.CodeRevisionGone:        ownBadRequest,
		kg.CodeResync:              ownBadRequest,
		kg.CodeAccessChanged:       ownBadRequest,
	},
}

var (
	ownBadRequest = answer{own, http.StatusBadRequest, http.StatusOK}
	invalidParams = answer{codeInvalidParams, http.StatusBadRequest, http.StatusOK}
)

// channelErrors is the table of channels/* (channels extension, section 9). Its RateLimitError has HTTP 200 except for streams, because 200 would mean an
// established stream.
var channelErrors = kg.Answers[answer]{
	Classes: map[kg.Class]answer{
		kg.ClassInvalid:     invalidParams,
		kg.ClassLimit:       {codeLimitExceeded, http.StatusBadRequest, http.StatusOK},
		kg.ClassNotFound:    invalidParams,
		kg.ClassDenied:      {codePermissionDenied, http.StatusForbidden, http.StatusOK},
		kg.ClassConflict:    {codeConflict, http.StatusConflict, http.StatusOK},
		kg.ClassRate:        {codeRateLimit, http.StatusTooManyRequests, http.StatusTooManyRequests},
		kg.ClassUnavailable: {own, http.StatusServiceUnavailable, http.StatusOK},
	},
	Codes: map[kg.Code]answer{
		kg.CodeChannelNotFound:     {codeChannelNotFound, http.StatusNotFound, http.StatusOK},
		kg.CodeUnauthenticated:     {codePermissionDenied, http.StatusUnauthorized, http.StatusUnauthorized},
		kg.CodeConstraintViolation: {codeAlignment, http.StatusForbidden, http.StatusOK},
		kg.CodeAlignmentViolation:  {codeAlignment, http.StatusForbidden, http.StatusOK},
		kg.CodeContentType:         {codeInvalidParams, http.StatusUnsupportedMediaType, http.StatusOK},
		kg.CodeRateLimited:         {codeRateLimit, http.StatusTooManyRequests, http.StatusOK},
		kg.CodeBudgetExceeded:      invalidParams,
		kg.CodeNotMember:           invalidParams,
		kg.CodeCursorGone:          invalidParams,
		kg.CodePositionGone:        invalidParams,
		kg.CodeRevisionGone:        invalidParams,
		kg.CodeResync:              ownBadRequest,
		kg.CodeAccessChanged:       ownBadRequest,
	},
}

// defaultRetryAfter is the retry delay of an overloaded server if the error has none.
const defaultRetryAfter = time.Second

// rename maps codes to the reasons that clients know.
var rename = map[kg.Code]string{kg.CodeClosed: reasonServerShutdown, kg.CodeAccessChanged: string(kg.CodeResync)}

// cause is the cause in details for codes whose reason is too general.
var cause = map[kg.Code]string{kg.CodeAccessChanged: string(kg.CodeAccessChanged)}

// errorOf converts the error of a call. Its fields are relative to the params.
func (h *Handler) errorOf(ctx context.Context, f family, stream bool, err error) *Error {
	var done *Error
	if errors.As(err, &done) {
		if stream && done.status == 0 { // clients of streams see no error in a body under 200
			done = done.withStatus(http.StatusBadRequest)
		}
		return f.convert(done)
	}
	e := kg.AsError(err)
	if e.Code == kg.CodeInternal && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		e = kg.Errorf(kg.CodeTimeout, "the request was canceled") // not an internal error
	}
	if (e.Code == kg.CodeOverloaded || e.Code == kg.CodeRateLimited) && e.RetryAfter == 0 { // the answer always has a retry delay
		patient := *e
		patient.RetryAfter = defaultRetryAfter
		e = &patient
	}
	h.options.Refused(ctx, e.Code)
	row, ok := f.table.Of(e.Code)
	if !ok {
		return f.convert(internalError(ctx, err, stream))
	}
	rpc, message, detail := row.rpc, e.Message, ""
	switch rpc {
	case own:
		rpc = f.own
	case codeInvalidParams:
		message, detail = "Invalid parameters", e.Message
	}
	out := newError(rpc, message, details{Reason: string(e.Code), Field: e.Field, Detail: detail, Hint: e.Hint,
		RetryAfterMs: e.RetryAfter.Milliseconds(), OldestSequence: e.OldestSequence, ProposalID: e.ProposalID})
	out.status, out.retryAfter, out.cause = row.unary, e.RetryAfter, err
	if stream {
		out.status = row.stream
	}
	if e.Limit == kg.LimitCommitBytes {
		out.status = http.StatusRequestEntityTooLarge
	}
	return f.convert(out.withDetails(func(d *details) {
		if name, ok := rename[e.Code]; ok {
			d.Reason = name
		}
		d.Cause = cause[e.Code]
		if f.log {
			d.OldestPosition = h.oldestPosition(e)
		}
	}))
}

// oldestPosition returns the position to offer to a reader whose own is gone.
func (h *Handler) oldestPosition(e *kg.Error) string {
	switch {
	case e.Code != kg.CodePositionGone && e.Code != kg.CodeResync && e.Code != kg.CodeAccessChanged || e.OldestSequence > 0:
		return ""
	case e.Oldest != nil:
		return h.store.FormatPosition(*e.Oldest)
	}
	return h.store.FormatPosition(h.store.Oldest())
}

// internalError hides the cause from the client. The caller logs the cause, once.
func internalError(ctx context.Context, cause error, stream bool) *Error {
	e := newError(codeInternal, "Internal error", details{Reason: string(kg.CodeInternal),
		RequestID: caller.From(ctx).RequestID, Hint: "The server's log has the details under the request id."})
	e.cause, e.hidden = cause, true
	if stream {
		e.status = http.StatusInternalServerError
	}
	return e
}
