package tasks

import (
	"encoding/json"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/kg"
)

// Failure is why a task failed, was rejected or canceled.
type Failure struct {
	Code    string          `json:"code"` // of the handler's choice, in UPPER_SNAKE
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"` // nil if none
}

// The codes of failures that koine itself writes down. Nobody else says them.
const (
	FailureExpired     = "EXPIRED"     // nobody claimed the task in time
	FailureLeft        = "AGENT_LEFT"  // the handler deregistered
	FailureInterrupted = "INTERRUPTED" // the server ended while the task was worked on
	FailureInternal    = "INTERNAL"    // the handler broke
)

// sayable tells what is wrong with a failure that somebody wants to write down; nil is
// none.
func (f *Failure) sayable(by caller.Caller) error {
	if f == nil {
		return nil
	}
	if len(f.Code)+len(f.Message)+len(f.Details) > MaxFailureBytes {
		return errTooMuch("error", "at most %d bytes", MaxFailureBytes)
	}
	switch f.Code {
	case FailureExpired, FailureLeft, FailureInterrupted, FailureInternal:
		if !by.Principal.Trusted() {
			return kg.Errorf(kg.CodeInvalid, "%s is for koine itself to say", f.Code).At("error.code")
		}
	}
	return nil
}

// fail writes down why the task comes to no good.
func (e *edit) fail(why *Failure) error {
	raw, err := plainjson.Encode(why)
	if err != nil {
		return err
	}
	e.record[propFailure] = []kg.Term{jsonText(raw)}
	return nil
}
