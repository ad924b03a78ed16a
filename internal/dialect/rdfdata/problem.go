package rdfdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"koine/internal/rdf"
	"koine/kg"
)

// problem is the body of a refusal (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
	Field  string `json:"field,omitempty"`
	Line   int    `json:"line,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// refusal is an error of this protocol, rather than one of the domain.
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

func (e *refusal) because(hint string) *refusal {
	e.hint = hint
	return e
}

// statusOf is the table from the codes of the domain to HTTP.
func statusOf(code kg.Code) int {
	switch code {
	case kg.CodeInvalid, kg.CodeRevisionAhead:
		return http.StatusBadRequest
	case kg.CodeNotFound, kg.CodeGraphNotFound:
		return http.StatusNotFound
	case kg.CodePermissionDenied, kg.CodeSourceForbidden, kg.CodeReserved:
		return http.StatusForbidden
	case kg.CodeRevisionConflict, kg.CodeIdempotencyConflict:
		return http.StatusConflict
	case kg.CodeRevisionGone:
		return http.StatusGone
	case kg.CodeLimitExceeded:
		return http.StatusRequestEntityTooLarge
	case kg.CodeConstraintViolation:
		return http.StatusUnprocessableEntity
	case kg.CodeOverloaded:
		return http.StatusTooManyRequests
	case kg.CodeDiskFull:
		return http.StatusInsufficientStorage
	case kg.CodeReadOnly, kg.CodeLogDamaged, kg.CodeClosed, kg.CodeTimeout:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func problemOf(err error) problem {
	p := problem{Domain: "koine"}
	var mine *refusal
	var syntax *rdf.SyntaxError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &mine):
		p.Status, p.Reason, p.Detail, p.Hint = mine.status, mine.reason, mine.detail, mine.hint
	case errors.As(err, &tooLarge):
		p.Status, p.Reason = http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE"
		p.Detail = fmt.Sprintf("the document has more than %d bytes", tooLarge.Limit)
	default:
		e := kg.AsError(err)
		p.Status, p.Reason, p.Detail, p.Field, p.Hint = statusOf(e.Code), string(e.Code), e.Message, e.Field, e.Hint
		if errors.As(err, &syntax) {
			p.Line = syntax.Line
			if e.Code != kg.CodeInternal {
				p.Status, p.Detail = http.StatusBadRequest, syntax.Error()
			}
		}
	}
	p.Title = http.StatusText(p.Status)
	return p
}

func writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	var e *kg.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		w.Write(append(body, '\n'))
	}
}
