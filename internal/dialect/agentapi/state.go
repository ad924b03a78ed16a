package agentapi

import (
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

// stateOf reads a state that somebody reports.
func stateOf(text string, failure *tasks.Failure) (tasks.State, error) {
	state, ok := reported[text]
	switch {
	case !ok:
		return "", kg.Errorf(kg.CodeInvalid, "is in_progress, completed or failed").At("state")
	case failure != nil && failure.Code == canceled:
		return tasks.Canceled, nil
	case failure != nil && failure.Code == rejected:
		return tasks.Rejected, nil
	}
	return state, nil
}

// failureOf is why a task failed, nil for one that has not.
func failureOf(t *tasks.Task) *wireError {
	text := ""
	if m := t.Status.Message; m != nil {
		for _, p := range m.Parts {
			if p.Text != nil {
				text += *p.Text
			}
		}
	}
	say := func(code, otherwise string) *wireError {
		if text == "" {
			text = otherwise
		}
		return &wireError{Code: code, Message: text}
	}
	switch {
	case t.Failure != nil:
		return &wireError{Code: t.Failure.Code, Message: t.Failure.Message, Details: t.Failure.Details}
	case t.Status.State == tasks.Canceled:
		return say(canceled, "the task was canceled")
	case t.Status.State == tasks.Rejected:
		return say(rejected, "the agent does not do it")
	case t.Status.State == tasks.Failed:
		return say(codeExecution, "the agent failed")
	}
	return nil
}
