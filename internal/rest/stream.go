package rest

import (
	"errors"

	"koine/internal/sse"
	"koine/kg"
)

// NoStream is why no stream was opened: CodeOverloaded where the server serves no more of
// them, any other error as it is.
func NoStream(err error) error {
	var refused *sse.Refused
	if !errors.As(err, &refused) {
		return err
	}
	e := kg.Errorf(kg.CodeOverloaded, "no stream can be opened now")
	e.RetryAfter = refused.RetryAfter
	return e
}
