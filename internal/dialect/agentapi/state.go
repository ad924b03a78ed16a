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

// states maps the states of A2A to those of the protocol. Canceled and rejected tasks
// have failed, with a code that tells them apart.
var states = map[tasks.State]string{
	tasks.Submitted: pending, tasks.Working: inProgress, tasks.InputRequired: inProgress, tasks.AuthRequired: inProgress,
	tasks.Completed: completed, tasks.Failed: failed, tasks.Canceled: failed, tasks.Rejected: failed,
}

// statesMeant maps a state of the protocol to states of A2A.
var statesMeant = map[string][]tasks.State{
	pending: {tasks.Submitted}, inProgress: {tasks.Working, tasks.InputRequired, tasks.AuthRequired},
	completed: {tasks.Completed}, failed: {tasks.Failed, tasks.Canceled, tasks.Rejected},
}

// statesReported maps a state in a report to a state of A2A; failed with one of the codes
// below is canceled or rejected.
var statesReported = map[string]tasks.State{inProgress: tasks.Working, completed: tasks.Completed, failed: tasks.Failed}

const (
	canceled = "CANCELED"
	rejected = "REJECTED"
)

// readState decodes a reported state and failure; "" for none.
func readState(text string, e *wireError) (tasks.State, *tasks.Failure, error) {
	state, ok := statesReported[text]
	switch {
	case !ok && text != "":
		return "", nil, kg.Errorf(kg.CodeInvalid, "state must be in_progress, completed or failed").At("state")
	case e == nil:
		return state, nil, nil
	case state != tasks.Failed:
		return "", nil, kg.Errorf(kg.CodeInvalid, "error requires the state failed").At("error")
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
		why = nil // the state has no more to add
	}
	return state, why, nil
}

// failureOf returns the failure of a task, nil if it has not failed.
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
		out.Code, otherwise = rejected, "the agent rejected the task"
	default:
		return nil
	}
	if t.Failure != nil {
		out.Message, out.Details = t.Failure.Message, t.Failure.Details
	}
	out.Message = cmp.Or(out.Message, textOfMessage(t.Status.Message), otherwise)
	return out
}

// textOfMessage returns the text of a message.
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
