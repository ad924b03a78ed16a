package base

import (
	"fmt"
	"time"

	"koine/internal/delivery/push"
	"koine/internal/tasks"
	"koine/kg"
)

// Form holds the differences between the versions in their common objects: the type of
// parts P, and names.
type Form[P any] struct {
	Kinds  bool // objects have a member kind
	Roles  map[tasks.Role]string
	States map[tasks.State]string
	Read   func(*P) (tasks.Part, error)
	Write  func(*tasks.Part) P
}

// Message encodes a message; nil for nil.
func (f *Form[P]) Message(m *tasks.Message, of About) *Message[P] {
	if m == nil {
		return nil
	}
	return &Message[P]{
		Kind: f.kindOf("message"), ID: m.ID, Context: of.Context, Task: of.Task, Role: f.Roles[m.Role], Parts: f.writeParts(m.Parts), Metadata: m.Metadata,
		Extensions: m.Extensions, References: m.References,
	}
}

// Status encodes a status. If the handler gave a failure without a message, the failure
// becomes the message.
func (f *Form[P]) Status(s *tasks.Status, failure *tasks.Failure, of About) *Status[P] {
	return &Status[P]{State: f.States[s.State], Message: f.Message(messageOf(s, failure, of), of), Timestamp: formatTime(s.Time)}
}

// Artifact encodes an artifact, or a chunk of one.
func (f *Form[P]) Artifact(a *tasks.Artifact) *Artifact[P] {
	return &Artifact[P]{
		ID: a.ID, Name: a.Name, Description: a.Description, Parts: f.writeParts(a.Parts), Metadata: a.Metadata, Extensions: a.Extensions,
	}
}

// Task encodes a task with the parts that were read.
func (f *Form[P]) Task(t *tasks.Task) *Task[P] {
	of := Of(t)
	out := &Task[P]{Kind: f.kindOf("task"), ID: t.ID, Context: t.Context, Status: f.Status(&t.Status, t.Failure, of), Metadata: t.Metadata}
	for i := range t.Artifacts {
		out.Artifacts = append(out.Artifacts, f.Artifact(&t.Artifacts[i]))
	}
	for i := range t.History {
		out.History = append(out.History, f.Message(&t.History[i], of))
	}
	return out
}

// ReadSend returns the request to send a message with the configuration of the version.
// The hook may be nil.
func (f *Form[P]) ReadSend(m *Message[P], history *int, wait bool, hook *push.Config) (*Send, error) {
	if m == nil {
		return nil, Required("message")
	}
	read, err := f.ReadSent(m)
	if err != nil {
		return nil, err
	}
	most, err := HistoryOf(history)
	return &Send{Message: read, Task: m.Task, Context: m.Context, Wait: wait, History: most, Push: hook}, err
}

// ReadSent decodes a message of a creator.
func (f *Form[P]) ReadSent(m *Message[P]) (tasks.Message, error) {
	switch {
	case m.ID == "":
		return tasks.Message{}, Required("message.messageId")
	case m.Role == "":
		return tasks.Message{}, Required("message.role")
	case m.Role != f.Roles[tasks.User]:
		return tasks.Message{}, kg.Errorf(kg.CodeInvalid, "the role of a sender must be %s", f.Roles[tasks.User]).At("message.role")
	}
	return f.ReadMessage(m)
}

// ReadMessage decodes a message of any author.
func (f *Form[P]) ReadMessage(m *Message[P]) (out tasks.Message, err error) {
	out = tasks.Message{ID: m.ID, Metadata: NonNull(m.Metadata), Extensions: m.Extensions, References: m.References}
	out.Parts, err = f.ReadParts("message.parts", m.Parts)
	return out, err
}

// ReadParts decodes parts; field is their path in the request.
func (f *Form[P]) ReadParts(field string, list []P) (out []tasks.Part, err error) {
	for i := range list {
		p, err := f.Read(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("%s[%d]", field, i))
		}
		out = append(out, p)
	}
	return out, nil
}

func (f *Form[P]) writeParts(list []tasks.Part) []P {
	out := make([]P, 0, len(list))
	for i := range list {
		out = append(out, f.Write(&list[i]))
	}
	return out
}

func (f *Form[P]) kindOf(name string) string {
	if f.Kinds {
		return name
	}
	return ""
}

// formatTime formats a time as A2A does.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func messageOf(s *tasks.Status, failure *tasks.Failure, of About) *tasks.Message {
	if s.Message != nil || failure == nil {
		return s.Message
	}
	text := failure.Message
	if text == "" {
		text = failure.Code
	}
	return &tasks.Message{ID: string(of.Task) + "-failure", Role: tasks.Agent, Parts: []tasks.Part{tasks.TextPart(text)}, Time: s.Time}
}
