package v1

import (
	"time"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// Codec is A2A 1.0.
type Codec struct{}

var _ base.Codec = Codec{}

// ReadSend reads a SendMessageRequest.
func (Codec) ReadSend(params []byte) (*base.Send, error) {
	var p struct {
		Message       *message `json:"message"`
		Configuration struct {
			ReturnImmediately bool        `json:"returnImmediately"`
			HistoryLength     *int        `json:"historyLength"`
			Push              *pushConfig `json:"taskPushNotificationConfig"`
		} `json:"configuration"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	c := &p.Configuration
	return form.ReadSend(p.Message, c.HistoryLength, !c.ReturnImmediately, c.Push.toConfig())
}

// ReadTask reads a GetTaskRequest and similar params.
func (Codec) ReadTask(params []byte) (*base.TaskRef, error) { return base.ReadTask(params) }

// ReadList reads a ListTasksRequest.
func (Codec) ReadList(params []byte) (*base.List, error) {
	var p struct {
		Context   string `json:"contextId"`
		Status    string `json:"status"`
		PageSize  *int   `json:"pageSize"`
		PageToken string `json:"pageToken"`
		History   *int   `json:"historyLength"`
		Since     string `json:"statusTimestampAfter"`
		Artifacts bool   `json:"includeArtifacts"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	out := &base.List{Context: p.Context, After: p.PageToken, Artifacts: p.Artifacts}
	var err error
	if out.History, err = base.HistoryOf(p.History); err != nil {
		return nil, err
	}
	if p.History == nil {
		out.History = 0
	}
	if out.State, err = readState(p.Status); err != nil {
		return nil, kg.AsError(err).At("status")
	}
	if p.PageSize != nil {
		if out.First = *p.PageSize; out.First < 1 || out.First > tasks.MaxPage {
			return nil, kg.Errorf(kg.CodeInvalid, "pageSize must be between 1 and %d", tasks.MaxPage).At("pageSize")
		}
	}
	if p.Since != "" {
		if out.Since, err = time.Parse(time.RFC3339, p.Since); err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "statusTimestampAfter must be a time such as 2026-01-02T15:04:05Z").At("statusTimestampAfter")
		}
	}
	return out, nil
}

func readState(text string) (tasks.State, error) {
	if text == "" || text == "TASK_STATE_UNSPECIFIED" {
		return "", nil
	}
	for state, name := range form.States {
		if name == text {
			return state, nil
		}
	}
	e := kg.Errorf(kg.CodeInvalid, "unknown state of a task")
	e.Hint = "Write the state as in TASK_STATE_COMPLETED."
	return "", e
}

// Task encodes a Task.
func (Codec) Task(t *tasks.Task) any { return form.Task(t) }

// Message encodes a Message.
func (Codec) Message(m *tasks.Message, of base.About) any { return form.Message(m, of) }

// Status encodes a TaskStatusUpdateEvent.
func (Codec) Status(e *tasks.Event, of base.About) any {
	return &statusUpdate{of.Task, of.Context, form.Status(e.Status, e.Failure, of)}
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
