package v03

import (
	"koine/a2a/internal/base"
	"koine/internal/delivery/forward"
	"koine/internal/tasks"
	"koine/kg"
)

// sendParams is a MessageSendParams.
type sendParams struct {
	Message       *message       `json:"message"`
	Configuration *configuration `json:"configuration,omitempty"`
}

type configuration struct {
	Blocking bool `json:"blocking"`
}

// Params encodes the params of a call of another server.
func Params(c *forward.Call) any {
	if c.Message == nil {
		return map[string]string{"id": c.Task}
	}
	out := &sendParams{Message: form.Message(c.Message, base.About{Task: tasks.TaskID(c.Task), Context: c.Context})}
	if c.Op == forward.Send {
		out.Configuration = new(configuration)
	}
	return out
}

// ReadResult decodes the result of a call of another server, by its kind.
func ReadResult(raw []byte) (*forward.Answer, error) {
	var of struct {
		Kind string `json:"kind"`
	}
	if err := base.Decode(raw, &of); err != nil {
		return nil, err
	}
	switch of.Kind {
	case "task":
		var t base.Task[part]
		if err := base.Decode(raw, &t); err != nil {
			return nil, err
		}
		return form.AnswerTask(&t)
	case "message":
		var m message
		if err := base.Decode(raw, &m); err != nil {
			return nil, err
		}
		return form.AnswerMessage(&m)
	case "status-update":
		var u statusUpdate
		if err := base.Decode(raw, &u); err != nil {
			return nil, err
		}
		return form.AnswerStatus(string(u.Task), u.Context, u.Status)
	case "artifact-update":
		var u artifactUpdate
		if err := base.Decode(raw, &u); err != nil {
			return nil, err
		}
		return form.AnswerArtifact(string(u.Task), u.Context, u.Artifact, u.Append, u.Last)
	}
	return nil, kg.Errorf(kg.CodeInvalid, "must be a task, a message, or an update of one").At("kind")
}
