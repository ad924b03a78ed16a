package agentapi

import (
	"cmp"

	"koine/internal/tasks"
	"koine/kg"
)

// The states of the protocol.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
	failed     = "failed"
)

// states are what A2A's are here. What was canceled or rejected has failed with a code
// that says so.
var states = map[tasks.State]string{
	tasks.Submitted: pending, tasks.Working: inProgress, tasks.InputRequired: inProgress, tasks.AuthRequired: inProgress,
	tasks.Completed: completed, tasks.Failed: failed, tasks.Canceled: failed, tasks.Rejected: failed,
}

// meant are the states of A2A that a state here stands for.
var meant = map[string][]tasks.State{
	pending: {tasks.Submitted}, inProgress: {tasks.Working, tasks.InputRequired, tasks.AuthRequired},
	completed: {tasks.Completed}, failed: {tasks.Failed, tasks.Canceled, tasks.Rejected},
}

// reported are the states that a handler reports with those here; failed with the
// codes below is the state that they say.
var reported = map[string]tasks.State{inProgress: tasks.Working, completed: tasks.Completed, failed: tasks.Failed}

const (
	canceled = "CANCELED"
	rejected = "REJECTED"
)

// readState reads a state that somebody reports, "" for none, and why.
func readState(text string, e *wireError) (tasks.State, *tasks.Failure, error) {
	state, ok := reported[text]
	switch {
	case !ok && text != "":
		return "", nil, kg.Errorf(kg.CodeInvalid, "is in_progress, completed or failed").At("state")
	case e == nil:
		return state, nil, nil
	case state != tasks.Failed:
		return "", nil, kg.Errorf(kg.CodeInvalid, "is said with the state failed").At("error")
	}
	why := &tasks.Failure{Code: cmp.Or(e.Code, codeExecution), Message: e.Message}
	if string(e.Details) != "null" {
		why.Details = e.Details
	}
	switch why.Code {
	case canceled:
		state = tasks.Canceled
	case rejected:
		state = tasks.Rejected
	}
	if state != tasks.Failed && why.Message == "" && why.Details == nil {
		why = nil // the state says it
	}
	return state, why, nil
}

// failureOf is why a task failed, nil for one that has not.
func failureOf(t *tasks.Task) *wireError {
	out, otherwise := &wireError{Code: codeExecution}, "the agent failed"
	switch t.Status.State {
	case tasks.Failed:
		if t.Failure != nil {
			out.Code = cmp.Or(t.Failure.Code, codeExecution)
		}
	case tasks.Canceled:
		out.Code, otherwise = canceled, "the task was canceled"
	case tasks.Rejected:
		out.Code, otherwise = rejected, "the agent does not do it"
	default:
		return nil
	}
	if t.Failure != nil {
		out.Message, out.Details = t.Failure.Message, t.Failure.Details
	}
	out.Message = cmp.Or(out.Message, textOfMessage(t.Status.Message), otherwise)
	return out
}

// textOfMessage is what a message says in words.
func textOfMessage(m *tasks.Message) (text string) {
	if m == nil {
		return ""
	}
	for _, p := range m.Parts {
		if p.Text != nil {
			text += *p.Text
		}
	}
	return text
}
