package rdfdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"koine/internal/caller"
	"koine/internal/rdf"
	"koine/kg"
)

// problem is an error response in the form of koine's plain HTTP endpoints:
// {"error": {"message": …, "data": {"reason": …}}}.
type problem struct {
	status  int
	Message string      `json:"message"`
	Data    problemData `json:"data"`
}

type problemData struct {
	Reason       string `json:"reason"`
	Domain       string `json:"domain"`
	Field        string `json:"field,omitempty"`
	Line         int    `json:"line,omitempty"`
	Hint         string `json:"hint,omitempty"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// refusal is an error of this protocol, as opposed to a domain error.
type refusal struct {
	status int
	reason string
	detail string
	hint   string
}

func (e *refusal) Error() string { return e.detail }

func refuse(status int, reason, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, detail: fmt.Sprintf(format, args...)}
}

func (e *refusal) withHint(hint string) *refusal {
	e.hint = hint
	return e
}

// statuses maps domain codes to HTTP status codes.
var statuses = kg.Answers[int]{
	Classes: map[kg.Class]int{
		kg.ClassInternal:    http.StatusInternalServerError,
		kg.ClassInvalid:     http.StatusBadRequest,
		kg.ClassNotFound:    http.StatusNotFound,
		kg.ClassDenied:      http.StatusForbidden,
		kg.ClassConflict:    http.StatusConflict,
		kg.ClassLimit:       http.StatusRequestEntityTooLarge,
		kg.ClassRate:        http.StatusTooManyRequests,
		kg.ClassUnavailable: http.StatusServiceUnavailable,
	},
	Codes: map[kg.Code]int{
		kg.CodeUnauthenticated:     http.StatusUnauthorized,
		kg.CodeRevisionGone:        http.StatusGone,
		kg.CodeConstraintViolation: http.StatusUnprocessableEntity,
		kg.CodeJudgeLimit:          http.StatusUnprocessableEntity,
		kg.CodeDiskFull:            http.StatusInsufficientStorage,
		// A proxy must not repeat a write whose outcome is unknown.
		kg.CodeOutcomeUnknown: http.StatusInternalServerError,
	},
}

func problemOf(err error) (p problem) {
	var mine *refusal
	var syntax *rdf.SyntaxError
	var tooLarge *http.MaxBytesError
	p.Data.Domain = "koine"
	switch {
	case errors.As(err, &mine):
		p.status, p.Message, p.Data.Reason, p.Data.Hint = mine.status, mine.detail, mine.reason, mine.hint
	case errors.As(err, &tooLarge):
		p.status, p.Data.Reason = http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE"
		p.Message = fmt.Sprintf("the document has more than %d bytes", tooLarge.Limit)
	default:
		e := kg.AsError(err)
		p.status, _ = statuses.Of(e.Code)
		p.Message = e.Message
		p.Data.Reason, p.Data.Field, p.Data.Hint = string(e.Code), e.Field, e.Hint
		p.Data.RetryAfterMs = e.RetryAfter.Milliseconds()
		if errors.As(err, &syntax) && e.Code != kg.CodeInternal {
			p.Message, p.Data.Line = syntax.Error(), syntax.Line
			if e.Code != kg.CodeLimitExceeded {
				p.status = http.StatusBadRequest
			}
		}
	}
	return p
}

// writeError writes an error response. Internal errors are logged, not exposed.
func (h *handler) writeError(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if h.Refused != nil {
		h.Refused(r.Context(), kg.Code(p.Data.Reason))
	}
	if p.status == http.StatusInternalServerError && h.Logger != nil {
		h.Logger.ErrorContext(r.Context(), "RDF over HTTP failed", "request", caller.From(r.Context()).RequestID, "error", err)
	}
	if ms := p.Data.RetryAfterMs; ms > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
	}
	body, err := json.Marshal(struct {
		Error problem `json:"error"`
	}{p})
	if err != nil {
		panic(err) // strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		w.Write(append(body, '\n')) // ignore the error: the client may be gone
	}
}
