package v03

import (
	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// Codec is A2A 0.3.
type Codec struct{}

var _ base.Codec = Codec{}

// ReadSend reads MessageSendParams. The answer waits unless blocking is false, as in
// the published servers.
func (Codec) ReadSend(params []byte) (*base.Send, error) {
	var p struct {
		Message       *message `json:"message"`
		Configuration struct {
			Blocking      *bool       `json:"blocking"`
			HistoryLength *int        `json:"historyLength"`
			Push          *pushConfig `json:"pushNotificationConfig"`
		} `json:"configuration"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	c := &p.Configuration
	return form.ReadSend(p.Message, c.HistoryLength, c.Blocking == nil || *c.Blocking, c.Push.toConfig())
}

// ReadTask reads TaskQueryParams, and TaskIdParams.
func (Codec) ReadTask(params []byte) (*base.TaskRef, error) { return base.ReadTask(params) }

// ReadList returns an error: 0.3 does not list tasks.
func (Codec) ReadList([]byte) (*base.List, error) {
	return nil, kg.Errorf(kg.CodeInvalid, "A2A 0.3 does not list tasks")
}

// Task encodes a Task.
func (Codec) Task(t *tasks.Task) any { return form.Task(t) }

// Message encodes a Message.
func (Codec) Message(m *tasks.Message, of base.About) any { return form.Message(m, of) }

// Status encodes a TaskStatusUpdateEvent. It is final if the stream ends after it.
func (Codec) Status(e *tasks.Event, of base.About) any {
	return &statusUpdate{"status-update", of.Task, of.Context, form.Status(e.Status, e.Failure, of), e.Status.State.Settled()}
}

// Chunk encodes a TaskArtifactUpdateEvent.
func (Codec) Chunk(c *tasks.Chunk, of base.About) any {
	return &artifactUpdate{"artifact-update", of.Task, of.Context, form.Artifact(&c.Artifact), c.Append, c.Complete}
}

// Result returns the object itself, which has a kind.
func (Codec) Result(object any) any { return object }
