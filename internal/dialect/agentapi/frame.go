package agentapi

import (
	"encoding/json"

	"koine/internal/tasks"
)

// The types of frames.
const (
	frameAuth      = "auth" // extension of koine
	frameMessage   = "message"
	frameCreated   = "task.created"
	frameUpdated   = "task.updated"
	frameCompleted = "task.completed"
	frameError     = "error"
	frameMore      = "tasks.more" // extension of koine: some changed tasks were left out
	frameAck       = "ack"        // extension of koine
)

// received is a frame from a client.
type received struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId"` // any JSON; repeated in the answer
	AgentID   string          `json:"agentId"`
	Letters   []string        `json:"letters"` // of an ack
	sending
	Task *struct {
		ID tasks.TaskID `json:"id"`
		change
	} `json:"task"`
}

// sentFrame is a frame from the server.
type sentFrame struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	EventID   string          `json:"eventId,omitempty"` // position to resume after
	TaskID    tasks.TaskID    `json:"taskId,omitempty"`
	Task      *task           `json:"task,omitempty"`
	// The message to the agent, or the one that it sent.
	MessageID string          `json:"messageId,omitempty"`
	AgentID   string          `json:"agentId,omitempty"`
	From      string          `json:"from,omitempty"`
	Message   []part          `json:"message,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Error     *wireError      `json:"error,omitempty"`
}

// taskFrame encodes the state of a task. A failed task has the type task.updated,
// because the specification has no other.
func taskFrame(t *tasks.Task) (*sentFrame, error) {
	out, err := writeTask(t)
	f := &sentFrame{Type: frameUpdated, TaskID: t.ID, Task: out}
	if t.Status.State == tasks.Completed {
		f.Type = frameCompleted
	}
	return f, err
}

// letterFrame encodes a message to the agent: with a new task, or to an open one.
func letterFrame(l *tasks.Letter) (*sentFrame, error) {
	t, err := writeTask(l.Task)
	if err != nil {
		return nil, err
	}
	parts, err := writeParts(l.Message.Parts)
	f := &sentFrame{
		Type: frameMessage, TaskID: l.Task.ID, Task: t, AgentID: bareID(l.Task.Handler), From: bareID(l.Message.Author),
		MessageID: messageID(l.Task.ID, l.Number), Message: parts, Metadata: l.Message.Metadata,
	}
	if l.Number == 1 {
		f.Type = frameCreated
	}
	return f, err
}
