package v1

import (
	"encoding/json"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// part is a Part: one of text, raw, url and data.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Raw       *string         `json:"raw,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// message is a Message.
type message struct {
	ID         string          `json:"messageId"`
	Context    string          `json:"contextId,omitempty"`
	Task       tasks.TaskID    `json:"taskId,omitempty"`
	Role       string          `json:"role"`
	Parts      []part          `json:"parts"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Extensions []string        `json:"extensions,omitempty"`
	References []tasks.TaskID  `json:"referenceTaskIds,omitempty"`
}

var roles = map[tasks.Role]string{tasks.User: "ROLE_USER", tasks.Agent: "ROLE_AGENT"}

// read is the message as the domain has it.
func (m *message) read() (tasks.Message, error) {
	out := tasks.Message{ID: m.ID, Metadata: base.Some(m.Metadata), Extensions: m.Extensions, References: m.References, Parts: readParts(m.Parts)}
	switch {
	case m.ID == "":
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("message.messageId")
	case m.Role == "":
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("message.role")
	case m.Role != roles[tasks.User]:
		return out, kg.Errorf(kg.CodeInvalid, "who sends a message is %s", roles[tasks.User]).At("message.role")
	}
	return out, nil
}

func readParts(list []part) (out []tasks.Part) {
	for _, p := range list {
		out = append(out, tasks.Part{
			Text: p.Text, Raw: p.Raw, URL: p.URL, Data: p.Data, MediaType: p.MediaType, Filename: p.Filename, Metadata: base.Some(p.Metadata),
		})
	}
	return out
}

func writeMessage(m *tasks.Message, of base.About) *message {
	if m == nil {
		return nil
	}
	return &message{
		ID: m.ID, Context: of.Context, Task: of.Task, Role: roles[m.Role], Parts: writeParts(m.Parts), Metadata: m.Metadata,
		Extensions: m.Extensions, References: m.References,
	}
}

func writeParts(list []tasks.Part) []part {
	out := make([]part, 0, len(list))
	for _, p := range list {
		out = append(out, part{
			Text: p.Text, Raw: p.Raw, URL: p.URL, Data: p.Data, MediaType: p.MediaType, Filename: p.Filename, Metadata: p.Metadata,
		})
	}
	return out
}
