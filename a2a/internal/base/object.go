package base

import (
	"encoding/json"

	"koine/internal/tasks"
)

// The objects common to both versions, with the parts of a version. Kind is the kind of
// object in 0.3; 1.0 has none.
type (
	// Task is a Task.
	Task[P any] struct {
		Kind      string          `json:"kind,omitempty"`
		ID        tasks.TaskID    `json:"id"`
		Context   string          `json:"contextId"`
		Status    *Status[P]      `json:"status"`
		Artifacts []*Artifact[P]  `json:"artifacts,omitempty"`
		History   []*Message[P]   `json:"history,omitempty"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
	}
	// Status is a TaskStatus.
	Status[P any] struct {
		State     string      `json:"state"`
		Message   *Message[P] `json:"message,omitempty"`
		Timestamp string      `json:"timestamp"`
	}
	// Message is a Message.
	Message[P any] struct {
		Kind       string          `json:"kind,omitempty"`
		ID         string          `json:"messageId"`
		Context    string          `json:"contextId,omitempty"`
		Task       tasks.TaskID    `json:"taskId,omitempty"`
		Role       string          `json:"role"`
		Parts      []P             `json:"parts"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
		Extensions []string        `json:"extensions,omitempty"`
		References []tasks.TaskID  `json:"referenceTaskIds,omitempty"`
	}
	// Artifact is an Artifact.
	Artifact[P any] struct {
		ID          string          `json:"artifactId"`
		Name        string          `json:"name,omitempty"`
		Description string          `json:"description,omitempty"`
		Parts       []P             `json:"parts"`
		Metadata    json.RawMessage `json:"metadata,omitempty"`
		Extensions  []string        `json:"extensions,omitempty"`
	}
)
