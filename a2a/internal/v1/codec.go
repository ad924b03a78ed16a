package v1

import (
	"encoding/json"
	"strings"
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
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Message == nil {
		return nil, kg.Errorf(kg.CodeInvalid, "is required").At("message")
	}
	m, err := p.Message.read()
	if err != nil {
		return nil, err
	}
	history, err := base.HistoryOf(p.Configuration.HistoryLength)
	return &base.Send{
		Message: m, Task: p.Message.Task, Context: p.Message.Context, Wait: !p.Configuration.ReturnImmediately,
		History: history, Metadata: base.Some(p.Metadata), Push: p.Configuration.Push.read(),
	}, err
}

// ReadTask reads a GetTaskRequest, and those like it.
func (Codec) ReadTask(params []byte) (*base.TaskRef, error) {
	var p struct {
		ID            tasks.TaskID `json:"id"`
		HistoryLength *int         `json:"historyLength"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.ID == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "is required").At("id")
	}
	history, err := base.HistoryOf(p.HistoryLength)
	return &base.TaskRef{ID: p.ID, History: history}, err
}

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
		return nil, err
	}
	if p.PageSize != nil {
		if out.First = *p.PageSize; out.First < 1 || out.First > tasks.MaxPage {
			return nil, kg.Errorf(kg.CodeInvalid, "is between 1 and %d", tasks.MaxPage).At("pageSize")
		}
	}
	if p.Since != "" {
		if out.Since, err = time.Parse(time.RFC3339, p.Since); err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "is a time as in 2026-01-02T15:04:05Z").At("statusTimestampAfter")
		}
	}
	return out, nil
}

func readState(text string) (tasks.State, error) {
	if text == "" || text == statePrefix+"UNSPECIFIED" {
		return "", nil
	}
	state, ok := strings.CutPrefix(text, statePrefix)
	if !ok || !tasks.State(state).Known() {
		return "", kg.Errorf(kg.CodeInvalid, "is no state of a task").At("status")
	}
	return tasks.State(state), nil
}

// Task is a Task.
func (Codec) Task(t *tasks.Task) any { return writeTask(t) }

// Message is a Message.
func (Codec) Message(m *tasks.Message, of base.About) any { return writeMessage(m, of) }

// Status is a TaskStatusUpdateEvent.
func (Codec) Status(e *tasks.Event, of base.About) any {
	return &statusUpdate{of.Task, of.Context, writeStatus(e.Status, e.Failure, of)}
}

// Chunk is a TaskArtifactUpdateEvent.
func (Codec) Chunk(c *tasks.Chunk, of base.About) any {
	return &artifactUpdate{of.Task, of.Context, writeArtifact(&c.Artifact), c.Append, c.Complete}
}

// Result is a SendMessageResponse or a StreamResponse.
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
