package rest

import (
	"errors"

	"koine/internal/sse"
	"koine/kg"
)

// StreamError converts the error of a stream that could not be opened: CodeOverloaded if
// the server is at its limit, other errors unchanged.
func StreamError(err error) error {
	var refused *sse.Refused
	if !errors.As(err, &refused) {
		return err
	}
	e := kg.Errorf(kg.CodeOverloaded, "the server has too many open streams; try again later")
	e.RetryAfter = refused.RetryAfter
	return e
}
