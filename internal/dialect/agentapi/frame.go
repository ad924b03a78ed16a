package agentapi

import (
	"encoding/json"

	"koine/internal/tasks"
)

// The types of frames.
const (
	frameAuth      = "auth" // koine's addition
	frameMessage   = "message"
	frameCreated   = "task.created"
	frameUpdated   = "task.updated"
	frameCompleted = "task.completed"
	frameError     = "error"
	frameMore      = "tasks.more" // koine's addition: not all tasks were told that changed
	frameAck       = "ack"        // koine's addition
)

// received is a frame of a client's.
type received struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId"` // any JSON; comes back in the answer
	AgentID   string          `json:"agentId"`
	Letters   []string        `json:"letters"` // of an ack
	sending
	Task *struct {
		ID tasks.TaskID `json:"id"`
		change
	} `json:"task"`
}

// sentFrame is a frame of koine's.
type sentFrame struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	EventID   string          `json:"eventId,omitempty"` // where to go on behind it
	TaskID    tasks.TaskID    `json:"taskId,omitempty"`
	Task      *task           `json:"task,omitempty"`
	// Of a message to the agent, or of one that it sent.
	MessageID string          `json:"messageId,omitempty"`
	AgentID   string          `json:"agentId,omitempty"`
	From      string          `json:"from,omitempty"`
	Message   []part          `json:"message,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Error     *wireError      `json:"error,omitempty"`
}

// taskFrame tells how a task is. One that has failed is told as updated: the text has
// no other word.
func taskFrame(t *tasks.Task) (*sentFrame, error) {
	out, err := writeTask(t)
	f := &sentFrame{Type: frameUpdated, TaskID: t.ID, Task: out}
	if t.Status.State == tasks.Completed {
		f.Type = frameCompleted
	}
	return f, err
}

// letterFrame is a message to the agent: with a task that it makes, or as one more.
func letterFrame(l *tasks.Letter) (*sentFrame, error) {
	t, err := writeTask(l.Task)
	if err != nil {
		return nil, err
	}
	parts, err := writeParts(l.Message.Parts)
	f := &sentFrame{
		Type: frameMessage, TaskID: l.Task.ID, Task: t, AgentID: bare(l.Task.Handler), From: bare(l.Message.Author),
		MessageID: messageID(l.Task.ID, l.Number), Message: parts, Metadata: l.Message.Metadata,
	}
	if l.Number == 1 {
		f.Type = frameCreated
	}
	return f, err
}
