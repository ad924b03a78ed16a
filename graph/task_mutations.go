package graph

import (
	"context"

	"koine/internal/tasks"
	"koine/kg"
)

// SendMessage answers Mutation.sendMessage. A new message always creates a
// task, also for a handler that could answer directly.
func (*mutationRoot) SendMessage(ctx context.Context, input SendMessageInput) (*SendMessagePayload, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	s := tasks.SendRequest{
		To: kg.AgentID(deref(input.To)), Task: tasks.TaskID(deref(input.TaskID)), Context: deref(input.ContextID), Parent: tasks.TaskID(deref(input.ParentID)),
		User: deref(input.UserID), AlwaysTask: true, Metadata: noNull(input.TaskMetadata),
		Message: tasks.Message{ID: deref(input.MessageID), Parts: partsIn(input.Parts), Metadata: noNull(input.Metadata), Extensions: input.Extensions},
	}
	for _, id := range input.ReferenceTaskIds {
		s.Message.References = append(s.Message.References, tasks.TaskID(id))
	}
	sent, err := service.Send(ctx, by, s)
	if err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"id": "taskId"}))
	}
	at := service.PositionAfter(sent.Task)
	r.notePosition(at)
	return &SendMessagePayload{Task: &Task{record: sent.Task, complete: !sent.Task.Partial}, Replayed: sent.Replayed, Position: Position(r.engine.deps.Store.FormatPosition(at))}, nil
}

// ReportTask answers Mutation.reportTask.
func (*mutationRoot) ReportTask(ctx context.Context, input ReportTaskInput) (*TaskPayload, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	report := tasks.Report{State: tasks.State(deref(input.State)), Metadata: noNull(input.Metadata), Letters: input.Letters, Key: deref(input.IdempotencyKey)}
	if v := input.ExpectedVersion; v != nil {
		if report.Version = *v; report.Version < 1 {
			return nil, inInput(kg.Errorf(kg.CodeInvalid, "expectedVersion must be at least 1").At("expectedVersion"))
		}
	}
	if input.Message != nil {
		report.Message = &tasks.Message{Parts: partsIn(input.Message)}
	}
	if f := input.Failure; f != nil {
		report.Failure = &tasks.Failure{Code: f.Code, Message: f.Message, Details: noNull(f.Details)}
	}
	for _, a := range input.Artifacts {
		report.Artifacts = append(report.Artifacts, tasks.Chunk{Append: deref(a.Append), Offset: a.Offset, Artifact: tasks.Artifact{
			ID: a.ID, Name: deref(a.Name), Description: deref(a.Description), Parts: partsIn(a.Parts),
			Metadata: noNull(a.Metadata), Extensions: a.Extensions, Complete: deref(a.Complete),
		}})
	}
	// Selected artifacts and messages are read by their own resolvers.
	out, err := service.SubmitReport(ctx, by, tasks.TaskID(input.TaskID), report, tasks.ReadOptions{})
	if err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"id": "taskId", "error": "failure", "error.code": "failure.code", "version": "expectedVersion"}))
	}
	r.notePosition(service.PositionAfter(out.Task))
	return &TaskPayload{Task: &Task{record: out.Task}}, r.chargeBytes(sizeOfTask(out.Task))
}

// CancelTask answers Mutation.cancelTask.
func (*mutationRoot) CancelTask(ctx context.Context, input CancelTaskInput) (*TaskPayload, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	t, err := service.Cancel(ctx, by, tasks.TaskID(input.TaskID))
	if err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"id": "taskId"}))
	}
	r.notePosition(service.PositionAfter(t))
	return &TaskPayload{Task: &Task{record: t, complete: !t.Partial}}, nil
}

// DeleteTask answers Mutation.deleteTask.
func (*mutationRoot) DeleteTask(ctx context.Context, input DeleteTaskInput) (*DeleteTaskPayload, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	if err := service.Delete(ctx, by, tasks.TaskID(input.TaskID)); err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"id": "taskId"}))
	}
	r.notePosition(r.engine.deps.Store.Head())
	return &DeleteTaskPayload{TaskID: input.TaskID}, nil
}

func partsIn(list []PartInput) []tasks.Part {
	out := make([]tasks.Part, len(list))
	for i, p := range list {
		out[i] = tasks.Part{Text: p.Text, Raw: p.Raw, URL: p.URL, Data: noNull(p.Data), MediaType: deref(p.MediaType), Filename: deref(p.Filename), Metadata: noNull(p.Metadata)}
	}
	return out
}

// noNull returns nil for the JSON value null.
func noNull[T ~[]byte](raw T) T {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
