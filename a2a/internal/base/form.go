package base

import (
	"fmt"
	"time"

	"koine/internal/push"
	"koine/internal/tasks"
	"koine/kg"
)

// Form is what differs between the versions in the objects that they have alike: the
// parts P, and names.
type Form[P any] struct {
	Kinds  bool // objects say what they are
	Roles  map[tasks.Role]string
	States map[tasks.State]string
	Read   func(*P) (tasks.Part, error)
	Write  func(*tasks.Part) P
}

// Message is a message as the version has it; nil for nil.
func (f *Form[P]) Message(m *tasks.Message, of About) *Message[P] {
	if m == nil {
		return nil
	}
	return &Message[P]{
		Kind: f.kind("message"), ID: m.ID, Context: of.Context, Task: of.Task, Role: f.Roles[m.Role], Parts: f.parts(m.Parts), Metadata: m.Metadata,
		Extensions: m.Extensions, References: m.References,
	}
}

// Status is a status. Where the handler gave a reason for a failure and said nothing,
// the message is the reason.
func (f *Form[P]) Status(s *tasks.Status, failure *tasks.Failure, of About) *Status[P] {
	return &Status[P]{State: f.States[s.State], Message: f.Message(said(s, failure, of), of), Timestamp: timestamp(s.Time)}
}

// Artifact is an artifact, or what comes to it.
func (f *Form[P]) Artifact(a *tasks.Artifact) *Artifact[P] {
	return &Artifact[P]{
		ID: a.ID, Name: a.Name, Description: a.Description, Parts: f.parts(a.Parts), Metadata: a.Metadata, Extensions: a.Extensions,
	}
}

// Task is a task, with as much as was read of it.
func (f *Form[P]) Task(t *tasks.Task) *Task[P] {
	of := Of(t)
	out := &Task[P]{Kind: f.kind("task"), ID: t.ID, Context: t.Context, Status: f.Status(&t.Status, t.Failure, of), Metadata: t.Metadata}
	for i := range t.Artifacts {
		out.Artifacts = append(out.Artifacts, f.Artifact(&t.Artifacts[i]))
	}
	for i := range t.History {
		out.History = append(out.History, f.Message(&t.History[i], of))
	}
	return out
}

// Sending is a message that is sent, with the configuration of the version. The hook may be
// nil.
func (f *Form[P]) Sending(m *Message[P], history *int, wait bool, hook *push.Config) (*Send, error) {
	if m == nil {
		return nil, Required("message")
	}
	read, err := f.Sent(m)
	if err != nil {
		return nil, err
	}
	most, err := HistoryOf(history)
	return &Send{Message: read, Task: m.Task, Context: m.Context, Wait: wait, History: most, Push: hook}, err
}

// Sent is a message of a creator's as the domain has it.
func (f *Form[P]) Sent(m *Message[P]) (tasks.Message, error) {
	switch {
	case m.ID == "":
		return tasks.Message{}, Required("message.messageId")
	case m.Role == "":
		return tasks.Message{}, Required("message.role")
	case m.Role != f.Roles[tasks.User]:
		return tasks.Message{}, kg.Errorf(kg.CodeInvalid, "who sends a message is %s", f.Roles[tasks.User]).At("message.role")
	}
	return f.Said(m)
}

// Said is a message, whoever said it, as the domain has it.
func (f *Form[P]) Said(m *Message[P]) (out tasks.Message, err error) {
	out = tasks.Message{ID: m.ID, Metadata: Some(m.Metadata), Extensions: m.Extensions, References: m.References}
	out.Parts, err = f.Parts("message.parts", m.Parts)
	return out, err
}

// Parts are the parts as the domain has them; the field is where they stand.
func (f *Form[P]) Parts(field string, list []P) (out []tasks.Part, err error) {
	for i := range list {
		p, err := f.Read(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("%s[%d]", field, i))
		}
		out = append(out, p)
	}
	return out, nil
}

func (f *Form[P]) parts(list []tasks.Part) []P {
	out := make([]P, 0, len(list))
	for i := range list {
		out = append(out, f.Write(&list[i]))
	}
	return out
}

func (f *Form[P]) kind(name string) string {
	if f.Kinds {
		return name
	}
	return ""
}

// timestamp is a time as A2A writes it.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func said(s *tasks.Status, failure *tasks.Failure, of About) *tasks.Message {
	if s.Message != nil || failure == nil {
		return s.Message
	}
	text := failure.Message
	if text == "" {
		text = failure.Code
	}
	return &tasks.Message{ID: string(of.Task) + "-failure", Role: tasks.Agent, Parts: []tasks.Part{tasks.TextPart(text)}, Time: s.Time}
}
