package agentapi

import (
	"encoding/json"
	"strings"
	"time"

	"koine/internal/tasks"
	"koine/kg"
)

// task is a Task.
type task struct {
	ID        tasks.TaskID    `json:"id"`
	AgentID   string          `json:"agentId"`
	State     string          `json:"state"`
	CreatedAt string          `json:"createdAt"`
	UpdatedAt string          `json:"updatedAt"`
	ParentID  tasks.TaskID    `json:"parentId,omitempty"`
	UserID    string          `json:"userId,omitempty"`
	Error     *wireError      `json:"error,omitempty"`
	Artifacts []artifact      `json:"artifacts,omitzero"` // absent if they are too large
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// writeTask encodes a task. The message of its status becomes the last artifact, of
// type message.
func writeTask(t *tasks.Task) (*task, error) {
	out := &task{
		ID: t.ID, AgentID: bareID(t.Handler), State: states[t.Status.State], CreatedAt: formatTime(t.Created), UpdatedAt: formatTime(t.Updated),
		ParentID: t.Parent, UserID: t.User, Error: failureOf(t), Artifacts: []artifact{}, Metadata: t.Metadata,
	}
	if t.Partial {
		out.Artifacts = nil
		return out, nil
	}
	for i := range t.Artifacts {
		a, err := writeArtifact(&t.Artifacts[i])
		if err != nil {
			return nil, err
		}
		out.Artifacts = append(out.Artifacts, a)
	}
	if m := t.Status.Message; m != nil && m.Role == tasks.Agent {
		a, err := writeStatusArtifact(t.ID, m)
		if err != nil {
			return nil, err
		}
		out.Artifacts = append(out.Artifacts, a)
	}
	return out, nil
}

// bareID returns an agent's id as this protocol spells it.
func bareID(id kg.AgentID) string { return strings.TrimPrefix(string(id), "agent://") }

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
