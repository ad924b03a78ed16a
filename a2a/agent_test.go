package a2a_test

import (
	"context"
	"errors"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// testAgent executes the command in the text of the first part.
type testAgent struct{}

func (testAgent) CheckMessage(m *tasks.Message) error {
	return m.CheckTypes("text/*", "application/json")
}

func (testAgent) Answer(_ context.Context, _ caller.Caller, m *tasks.Message) (*tasks.Message, error) {
	switch order(m) {
	case "answer":
		return &tasks.Message{ID: "answer", Role: tasks.Agent, Parts: m.Parts}, nil
	case "break":
		return nil, errors.New("a fault of ours")
	}
	return nil, nil
}

func (testAgent) Work(ctx context.Context, j *tasks.Job) error {
	switch order(&j.Message) {
	case "fail":
		return kg.Errorf(kg.CodeInvalid, "not like that")
	case "reject":
		return j.Report(ctx, tasks.Report{State: tasks.Rejected})
	case "ask":
		return j.Report(ctx, tasks.Report{State: tasks.InputRequired, Message: &tasks.Message{ID: "question", Parts: []tasks.Part{tasks.TextPart("which?")}}})
	case "wait":
		<-ctx.Done()
		return ctx.Err()
	}
	if err := j.Report(ctx, tasks.Report{State: tasks.Working}); err != nil {
		return err
	}
	half := tasks.Chunk{Artifact: tasks.Artifact{ID: "a", Name: "what came", Parts: j.Message.Parts}}
	if err := j.Report(ctx, tasks.Report{Artifacts: []tasks.Chunk{half}}); err != nil {
		return err
	}
	half.Append, half.Complete, half.Name = true, true, ""
	return j.Report(ctx, tasks.Report{Artifacts: []tasks.Chunk{half}, State: tasks.Completed})
}

func order(m *tasks.Message) string {
	if text := m.Parts[0].Text; text != nil {
		return *text
	}
	return ""
}
