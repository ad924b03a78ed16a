package v03

import (
	"encoding/json"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// task is a Task.
type task struct {
	Kind      string          `json:"kind"`
	ID        tasks.TaskID    `json:"id"`
	Context   string          `json:"contextId"`
	Status    *status         `json:"status"`
	Artifacts []*artifact     `json:"artifacts,omitempty"`
	History   []*message      `json:"history,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// status is a TaskStatus.
type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

// artifact is an Artifact.
type artifact struct {
	ID          string          `json:"artifactId"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parts       []part          `json:"parts"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Extensions  []string        `json:"extensions,omitempty"`
}

// statusUpdate is a TaskStatusUpdateEvent.
type statusUpdate struct {
	Kind    string       `json:"kind"`
	Task    tasks.TaskID `json:"taskId"`
	Context string       `json:"contextId"`
	Status  *status      `json:"status"`
	Final   bool         `json:"final"`
}

// artifactUpdate is a TaskArtifactUpdateEvent.
type artifactUpdate struct {
	Kind     string       `json:"kind"`
	Task     tasks.TaskID `json:"taskId"`
	Context  string       `json:"contextId"`
	Artifact *artifact    `json:"artifact"`
	Append   bool         `json:"append"`
	Last     bool         `json:"lastChunk"`
}

var states = map[tasks.State]string{
	tasks.Submitted: "submitted", tasks.Working: "working", tasks.InputRequired: "input-required", tasks.AuthRequired: "auth-required",
	tasks.Completed: "completed", tasks.Failed: "failed", tasks.Canceled: "canceled", tasks.Rejected: "rejected",
}

func writeStatus(s *tasks.Status, failure *tasks.Failure, of base.About) *status {
	return &status{
		State: states[s.State], Message: writeMessage(base.Said(s, failure, of), of), Timestamp: base.Timestamp(s.Time),
	}
}

func writeArtifact(a *tasks.Artifact) *artifact {
	return &artifact{
		ID: a.ID, Name: a.Name, Description: a.Description, Parts: writeParts(a.Parts), Metadata: a.Metadata, Extensions: a.Extensions,
	}
}

func writeTask(t *tasks.Task) *task {
	of := base.Of(t)
	out := &task{Kind: "task", ID: t.ID, Context: t.Context, Status: writeStatus(&t.Status, t.Failure, of), Metadata: t.Metadata}
	for i := range t.Artifacts {
		out.Artifacts = append(out.Artifacts, writeArtifact(&t.Artifacts[i]))
	}
	for i := range t.History {
		out.History = append(out.History, writeMessage(&t.History[i], of))
	}
	return out
}
