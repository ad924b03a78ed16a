package a2a

import (
	"errors"
	"slices"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// queryError converts the errors of an operation without data: -32010 with the GraphQL
// errors in its details and the reason of the first. Errors that are not about the
// query keep their own code.
func queryError(failed gqlerror.List) error {
	if len(failed) == 0 {
		return errors.New("the engine returned neither data nor errors")
	}
	first := readExtensions(failed[0])
	switch first.code {
	case kg.CodeRateLimited, kg.CodeOverloaded, kg.CodeConstraintViolation, kg.CodeAlignmentViolation:
		return &kg.Error{Code: first.code, Message: failed[0].Message, Hint: first.hint, RetryAfter: first.retryAfter}
	case "":
		first.code = kg.CodeInvalid
	}
	raw, err := appendJSON(nil, failed)
	if err != nil {
		return err
	}
	return newError(codeQuery, failed[0].Message, details{Reason: string(first.code), Hint: first.hint, Errors: raw,
		RetryAfterMs: first.retryAfter.Milliseconds()})
}

// hasNoData reports whether an operation with errors returned no data because all its
// fields failed.
func hasNoData(r *operation.Result) bool {
	if len(r.Data) == 0 || string(r.Data) == "null" {
		return true
	}
	if len(r.Errors) == 0 {
		return false
	}
	return !slices.ContainsFunc(splitObject(r.Data), func(m member) bool { return !isAbsent(m.value) })
}

// extensions are the extensions of a GraphQL error.
type extensions struct {
	code       kg.Code
	hint       string
	retryAfter time.Duration
}

func readExtensions(e *gqlerror.Error) (x extensions) {
	code, _ := e.Extensions["code"].(string)
	x.code = kg.Code(code)
	x.hint, _ = e.Extensions["hint"].(string)
	switch ms := e.Extensions["retryAfterMs"].(type) {
	case int64:
		x.retryAfter = time.Duration(ms) * time.Millisecond
	}
	return x
}
