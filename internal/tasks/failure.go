package tasks

import (
	"encoding/json"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Failure is the reason for which a task failed, or was rejected or canceled.
type Failure struct {
	Code    string          `json:"code"` // chosen by the handler, in UPPER_SNAKE
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"` // nil if none
}

// The codes of failures that koine itself reports. Clients may not use them.
const (
	FailureExpired     = "EXPIRED"     // the task was not claimed in time
	FailureLeft        = "AGENT_LEFT"  // the handler deregistered
	FailureInterrupted = "INTERRUPTED" // the server stopped while the task was running
	FailureInternal    = "INTERNAL"    // the handler panicked or failed internally
)

// checkCode checks a failure that a caller reports. A nil failure is valid.
func (f *Failure) checkCode(by caller.Caller) error {
	if f == nil {
		return nil
	}
	if len(f.Code)+len(f.Message)+len(f.Details) > MaxFailureBytes {
		return errTooMuch("error", "at most %d bytes", MaxFailureBytes)
	}
	switch f.Code {
	case FailureExpired, FailureLeft, FailureInterrupted, FailureInternal:
		if !by.Principal.Trusted() {
			return kg.Errorf(kg.CodeInvalid, "the code %s is reserved for koine", f.Code).At("error.code")
		}
	}
	return nil
}

// setFailure records the failure of the task.
func (e *edit) setFailure(why *Failure) error {
	raw, err := plainjson.Encode(why)
	if err != nil {
		return err
	}
	e.record[propFailure] = systemgraph.JSON(raw)
	return nil
}
