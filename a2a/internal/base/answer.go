package base

import (
	"fmt"

	"koine/internal/delivery/forward"
	"koine/internal/tasks"
	"koine/kg"
)

// AnswerTask decodes the task of another server.
func (f *Form[P]) AnswerTask(t *Task[P]) (*forward.Answer, error) {
	a, err := f.AnswerStatus(string(t.ID), t.Context, t.Status)
	if err != nil {
		return nil, err
	}
	a.Whole = true
	for i, artifact := range t.Artifacts {
		c, err := f.readChunk(fmt.Sprintf("artifacts[%d]", i), artifact)
		if err != nil {
			return nil, err
		}
		a.Chunks = append(a.Chunks, c...)
	}
	return a, nil
}

// AnswerStatus decodes the status of a task of another server.
func (f *Form[P]) AnswerStatus(task, context string, s *Status[P]) (*forward.Answer, error) {
	if task == "" {
		return nil, Required("taskId")
	}
	if s == nil {
		return nil, Required("status")
	}
	a := &forward.Answer{Task: task, Context: context}
	for state, name := range f.States {
		if name == s.State {
			a.State = state
		}
	}
	if a.State == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "unknown state of a task").At("status.state")
	}
	if s.Message == nil {
		return a, nil
	}
	m, err := f.ReadMessage(s.Message)
	a.Message = &m
	return a, err
}

// AnswerArtifact decodes an artifact, or a chunk of one, of another server.
func (f *Form[P]) AnswerArtifact(task, context string, artifact *Artifact[P], more, last bool) (*forward.Answer, error) {
	if task == "" {
		return nil, Required("taskId")
	}
	chunks, err := f.readChunk("artifact", artifact)
	if err != nil {
		return nil, err
	}
	for i := range chunks {
		chunks[i].Append, chunks[i].Complete = more, last
	}
	return &forward.Answer{Task: task, Context: context, Chunks: chunks}, nil
}

// AnswerMessage decodes a message that another server answers with.
func (f *Form[P]) AnswerMessage(m *Message[P]) (*forward.Answer, error) {
	read, err := f.ReadMessage(m)
	return &forward.Answer{Context: m.Context, Message: &read}, err
}

// readChunk decodes an artifact; one without parts is no chunk.
func (f *Form[P]) readChunk(field string, a *Artifact[P]) ([]tasks.Chunk, error) {
	if a == nil || a.ID == "" {
		return nil, Required(field + ".artifactId")
	}
	parts, err := f.ReadParts(field+".parts", a.Parts)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	return []tasks.Chunk{{Artifact: tasks.Artifact{
		ID: a.ID, Name: a.Name, Description: a.Description, Parts: parts, Metadata: NonNull(a.Metadata), Extensions: a.Extensions,
	}}}, nil
}
