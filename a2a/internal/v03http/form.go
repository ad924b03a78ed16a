package v03http

import (
	"encoding/json"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// form is the form of the common objects: names as in 1.0, but for a canceled task.
var form = base.Form[part]{
	Roles: map[tasks.Role]string{tasks.User: "ROLE_USER", tasks.Agent: "ROLE_AGENT"},
	States: map[tasks.State]string{
		tasks.Submitted: "TASK_STATE_SUBMITTED", tasks.Working: "TASK_STATE_WORKING", tasks.InputRequired: "TASK_STATE_INPUT_REQUIRED",
		tasks.AuthRequired: "TASK_STATE_AUTH_REQUIRED", tasks.Completed: "TASK_STATE_COMPLETED", tasks.Failed: "TASK_STATE_FAILED",
		tasks.Canceled: "TASK_STATE_CANCELLED", tasks.Rejected: "TASK_STATE_REJECTED",
	},
	Read: readPart, Write: writePart,
}

// task is a Task.
type task struct {
	ID        tasks.TaskID           `json:"id"`
	Context   string                 `json:"contextId"`
	Status    *status                `json:"status"`
	Artifacts []*base.Artifact[part] `json:"artifacts,omitempty"`
	History   []*message             `json:"history,omitempty"`
	Metadata  json.RawMessage        `json:"metadata,omitempty"`
}

// status is a TaskStatus.
type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

// message is a Message: its parts are its content.
type message struct {
	ID         string          `json:"messageId"`
	Context    string          `json:"contextId,omitempty"`
	Task       tasks.TaskID    `json:"taskId,omitempty"`
	Role       string          `json:"role"`
	Content    []part          `json:"content"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Extensions []string        `json:"extensions,omitempty"`
}

// part is a Part: exactly one of text, file and data.
type part struct {
	Text     *string         `json:"text,omitempty"`
	File     *file           `json:"file,omitempty"`
	Data     *data           `json:"data,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// file is a FilePart.
type file struct {
	URI      *string `json:"fileWithUri,omitempty"`
	Bytes    *string `json:"fileWithBytes,omitempty"`
	MimeType string  `json:"mimeType,omitempty"`
	Name     string  `json:"name,omitempty"`
}

// data is a DataPart.
type data struct {
	Data json.RawMessage `json:"data"`
}

func readPart(p *part) (tasks.Part, error) {
	out := tasks.Part{Metadata: base.NonNull(p.Metadata)}
	switch {
	case p.Text != nil && p.File == nil && p.Data == nil:
		out.Text = p.Text
	case p.File != nil && p.Text == nil && p.Data == nil:
		out.Raw, out.URL, out.MediaType, out.Filename = p.File.Bytes, p.File.URI, p.File.MimeType, p.File.Name
	case p.Data != nil && p.Text == nil && p.File == nil:
		if out.Data = p.Data.Data; out.Data == nil {
			return out, base.Required("data.data")
		}
	default:
		return out, kg.Errorf(kg.CodeInvalid, "must have exactly one of text, file and data")
	}
	return out, nil
}

func writePart(p *tasks.Part) part {
	switch {
	case p.Text != nil:
		return part{Text: p.Text, Metadata: p.Metadata}
	case p.Data != nil:
		return part{Data: &data{p.Data}, Metadata: p.Metadata}
	}
	return part{File: &file{p.URL, p.Raw, p.MediaType, p.Filename}, Metadata: p.Metadata}
}

// messageOf returns the message with its parts as content; nil for nil.
func messageOf(m *base.Message[part]) *message {
	if m == nil {
		return nil
	}
	return &message{m.ID, m.Context, m.Task, m.Role, m.Parts, m.Metadata, m.Extensions}
}

func statusOf(s *base.Status[part]) *status {
	return &status{s.State, messageOf(s.Message), s.Timestamp}
}
