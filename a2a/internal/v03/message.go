package v03

import (
	"encoding/json"
	"fmt"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// part is a Part: of the kind text, file or data.
type part struct {
	Kind     string          `json:"kind"`
	Text     *string         `json:"text,omitempty"`
	File     *file           `json:"file,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// file is the content of a file, or where it is.
type file struct {
	Bytes    *string `json:"bytes,omitempty"`
	URI      *string `json:"uri,omitempty"`
	MimeType string  `json:"mimeType,omitempty"`
	Name     string  `json:"name,omitempty"`
}

// message is a Message.
type message struct {
	Kind       string          `json:"kind"`
	ID         string          `json:"messageId"`
	Context    string          `json:"contextId,omitempty"`
	Task       tasks.TaskID    `json:"taskId,omitempty"`
	Role       string          `json:"role"`
	Parts      []part          `json:"parts"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Extensions []string        `json:"extensions,omitempty"`
	References []tasks.TaskID  `json:"referenceTaskIds,omitempty"`
}

var roles = map[tasks.Role]string{tasks.User: "user", tasks.Agent: "agent"}

// read is the message as the domain has it.
func (m *message) read() (tasks.Message, error) {
	out := tasks.Message{ID: m.ID, Metadata: base.Some(m.Metadata), Extensions: m.Extensions, References: m.References}
	switch {
	case m.ID == "":
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("message.messageId")
	case m.Role == "":
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("message.role")
	case m.Role != roles[tasks.User]:
		return out, kg.Errorf(kg.CodeInvalid, "who sends a message is %q", roles[tasks.User]).At("message.role")
	}
	for i := range m.Parts {
		p, err := m.Parts[i].read()
		if err != nil {
			return out, kg.AsError(err).At(fmt.Sprintf("message.parts[%d]", i))
		}
		out.Parts = append(out.Parts, p)
	}
	return out, nil
}

func (p *part) read() (tasks.Part, error) {
	out := tasks.Part{Metadata: base.Some(p.Metadata)}
	switch p.Kind {
	case "text":
		out.Text = p.Text
	case "data":
		out.Data = p.Data
	case "file":
		if p.File == nil {
			return out, kg.Errorf(kg.CodeInvalid, "is required").At("file")
		}
		out.Raw, out.URL, out.MediaType, out.Filename = p.File.Bytes, p.File.URI, p.File.MimeType, p.File.Name
	default:
		return out, kg.Errorf(kg.CodeInvalid, "is text, file or data").At("kind")
	}
	return out, nil
}

func writeMessage(m *tasks.Message, of base.About) *message {
	if m == nil {
		return nil
	}
	return &message{
		Kind: "message", ID: m.ID, Context: of.Context, Task: of.Task, Role: roles[m.Role], Parts: writeParts(m.Parts), Metadata: m.Metadata,
		Extensions: m.Extensions, References: m.References,
	}
}

func writeParts(list []tasks.Part) []part {
	out := make([]part, 0, len(list))
	for i := range list {
		out = append(out, writePart(&list[i]))
	}
	return out
}

func writePart(p *tasks.Part) part {
	switch {
	case p.Text != nil:
		return part{Kind: "text", Text: p.Text, Metadata: p.Metadata}
	case p.Data != nil:
		return part{Kind: "data", Data: p.Data, Metadata: p.Metadata}
	}
	return part{Kind: "file", File: &file{p.Raw, p.URL, p.MediaType, p.Filename}, Metadata: p.Metadata}
}
