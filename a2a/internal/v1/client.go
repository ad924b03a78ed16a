package v1

import (
	"koine/a2a/internal/base"
	"koine/internal/delivery/forward"
	"koine/internal/tasks"
	"koine/kg"
)

// sendRequest is a SendMessageRequest.
type sendRequest struct {
	Message       *message       `json:"message"`
	Configuration *configuration `json:"configuration,omitempty"`
}

type configuration struct {
	ReturnImmediately bool `json:"returnImmediately"`
}

// Params encodes the params of a call of another server.
func Params(c *forward.Call) any {
	if c.Message == nil {
		return map[string]string{"id": c.Task}
	}
	out := &sendRequest{Message: form.Message(c.Message, base.About{Task: tasks.TaskID(c.Task), Context: c.Context})}
	if c.Op == forward.Send {
		out.Configuration = &configuration{ReturnImmediately: true}
	}
	return out
}

// ReadResult decodes the result of a call of another server: a Task, or a StreamResponse
// or SendMessageResponse.
func ReadResult(op forward.Op, raw []byte) (*forward.Answer, error) {
	if op == forward.Get || op == forward.Cancel {
		var t task
		if err := base.Decode(raw, &t); err != nil {
			return nil, err
		}
		return form.AnswerTask(&t)
	}
	var r struct {
		Task     *task           `json:"task"`
		Message  *message        `json:"message"`
		Status   *statusUpdate   `json:"statusUpdate"`
		Artifact *artifactUpdate `json:"artifactUpdate"`
	}
	if err := base.Decode(raw, &r); err != nil {
		return nil, err
	}
	switch {
	case r.Task != nil:
		return form.AnswerTask(r.Task)
	case r.Message != nil:
		return form.AnswerMessage(r.Message)
	case r.Status != nil:
		return form.AnswerStatus(string(r.Status.Task), r.Status.Context, r.Status.Status)
	case r.Artifact != nil:
		u := r.Artifact
		return form.AnswerArtifact(string(u.Task), u.Context, u.Artifact, u.Append, u.Last)
	}
	return nil, kg.Errorf(kg.CodeInvalid, "must be a task, a message or an update of a task")
}
