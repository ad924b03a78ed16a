package v03http

import (
	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// Codec is A2A 0.3 over HTTP+JSON.
type Codec struct{}

var _ base.Codec = Codec{}

// ReadSend reads a SendMessageRequest, whose message is also accepted by its older name
// request, and parts beside content. A configuration without blocking does not wait: in the JSON
// of protocol buffers false is absent.
func (Codec) ReadSend(params []byte) (*base.Send, error) {
	type sent struct {
		message
		Parts []part `json:"parts"`
	}
	var p struct {
		Message       *sent `json:"message"`
		Request       *sent `json:"request"`
		Configuration *struct {
			Blocking      bool        `json:"blocking"`
			HistoryLength *int        `json:"historyLength"`
			Push          *pushConfig `json:"pushNotification"`
		} `json:"configuration"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Message == nil {
		p.Message = p.Request
	}
	var m *base.Message[part]
	if s := p.Message; s != nil {
		m = &base.Message[part]{ID: s.ID, Context: s.Context, Task: s.Task, Role: s.Role, Parts: s.Content, Metadata: s.Metadata, Extensions: s.Extensions}
		if m.Parts == nil {
			m.Parts = s.Parts
		}
	}
	if c := p.Configuration; c != nil {
		return form.ReadSend(m, c.HistoryLength, c.Blocking, c.Push.toConfig())
	}
	return form.ReadSend(m, nil, true, nil)
}

// ReadTask reads a GetTaskRequest and similar params.
func (Codec) ReadTask(params []byte) (*base.TaskRef, error) { return base.ReadTask(params) }

// ReadList returns an error: 0.3 does not list tasks.
func (Codec) ReadList([]byte) (*base.List, error) {
	return nil, kg.Errorf(kg.CodeInvalid, "A2A 0.3 does not list tasks")
}

// Task encodes a Task.
func (Codec) Task(t *tasks.Task) any {
	b := form.Task(t)
	out := &task{b.ID, b.Context, statusOf(b.Status), b.Artifacts, nil, b.Metadata}
	for _, m := range b.History {
		out.History = append(out.History, messageOf(m))
	}
	return out
}

// Message encodes a Message.
func (Codec) Message(m *tasks.Message, of base.About) any { return messageOf(form.Message(m, of)) }

// statusUpdate is a TaskStatusUpdateEvent.
type statusUpdate struct {
	Task    tasks.TaskID `json:"taskId"`
	Context string       `json:"contextId"`
	Status  *status      `json:"status"`
	Final   bool         `json:"final"`
}

// Status encodes a TaskStatusUpdateEvent. It is final if the stream ends after it.
func (Codec) Status(e *tasks.Event, of base.About) any {
	return &statusUpdate{of.Task, of.Context, statusOf(form.Status(e.Status, e.Failure, of)), e.Status.State.Settled()}
}

// artifactUpdate is a TaskArtifactUpdateEvent.
type artifactUpdate struct {
	Task     tasks.TaskID         `json:"taskId"`
	Context  string               `json:"contextId"`
	Artifact *base.Artifact[part] `json:"artifact"`
	Append   bool                 `json:"append"`
	Last     bool                 `json:"lastChunk"`
}

// Chunk encodes a TaskArtifactUpdateEvent.
func (Codec) Chunk(c *tasks.Chunk, of base.About) any {
	return &artifactUpdate{of.Task, of.Context, form.Artifact(&c.Artifact), c.Append, c.Complete}
}

// Result wraps an object in a SendMessageResponse or a StreamResponse.
func (Codec) Result(object any) any {
	switch object.(type) {
	case *task:
		return map[string]any{"task": object}
	case *message:
		return map[string]any{"message": object}
	case *statusUpdate:
		return map[string]any{"statusUpdate": object}
	}
	return map[string]any{"artifactUpdate": object}
}
