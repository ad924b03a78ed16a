package graph

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/tasks"
	"koine/kg"
)

// Task is a task as the caller sees it.
type Task struct {
	record *tasks.Task
	// complete reports that the artifacts were loaded too.
	complete bool
}

// taskService returns the task service and the caller.
func (r *run) taskService() (*tasks.Service, tasks.Caller, error) {
	by := tasks.Caller{Principal: r.request.Principal, Actor: r.request.Actor}
	if r.engine.deps.Tasks == nil {
		return nil, by, kg.Errorf(kg.CodeNotFound, "tasks are disabled on this server")
	}
	return r.engine.deps.Tasks, by, nil
}

// readTask answers Query.task.
func readTask(ctx context.Context, id string) (*Task, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	t, err := service.Get(ctx, by, tasks.TaskID(id), tasks.ReadOptions{})
	if err != nil {
		return nil, err
	}
	return &Task{record: t}, r.chargeBytes(sizeOfTask(t))
}

// taskIfAny returns the task with the id, nil for "" and if the caller takes
// no part in it.
func taskIfAny(ctx context.Context, id tasks.TaskID) (*Task, error) {
	if id == "" || runOf(ctx).engine.deps.Tasks == nil {
		return nil, nil
	}
	t, err := readTask(ctx, string(id))
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, nil
	}
	return t, err
}

func sizeOfTask(t *tasks.Task) int {
	n := len(t.Metadata)
	if t.Failure != nil {
		n += len(t.Failure.Message) + len(t.Failure.Details)
	}
	if m := t.Status.Message; m != nil {
		n += sizeOfParts(m.Parts) + len(m.Metadata)
	}
	return n
}

func sizeOfParts(parts []tasks.Part) (n int) {
	for i := range parts {
		p := &parts[i]
		n += len(deref(p.Text)) + len(deref(p.Raw)) + len(deref(p.URL)) + len(p.Data) + len(p.Metadata)
	}
	return n
}

// ID is the id of the task.
func (t *Task) ID() string { return string(t.record.ID) }

// ContextID groups related tasks.
func (t *Task) ContextID() string { return t.record.Context }

// Creator is the agent that created the task.
func (t *Task) Creator() *Agent { return agentOf(t.record.Creator) }

// CreatorID is the id of that agent.
func (t *Task) CreatorID() string { return string(t.record.Creator) }

// Handler is the agent that works on the task.
func (t *Task) Handler() *Agent { return agentOf(t.record.Handler) }

// HandlerID is the id of that agent.
func (t *Task) HandlerID() string { return string(t.record.Handler) }

// Status is the state of the task.
func (t *Task) Status() *TaskStatus { return shownStatus(&t.record.Status) }

func shownStatus(s *tasks.Status) *TaskStatus {
	if s == nil {
		return nil
	}
	return &TaskStatus{State: TaskState(s.State), Message: shownMessage(s.Message), Time: s.Time}
}

// MessageCount counts the messages of the task.
func (t *Task) MessageCount() int { return t.record.Messages }

// Metadata is a JSON object, nil for none.
func (t *Task) Metadata() json.RawMessage { return t.record.Metadata }

// ParentID is the id of the parent task.
func (t *Task) ParentID() *string { return nilIfEmpty(string(t.record.Parent)) }

// Parent is the parent task, nil if the caller takes no part in it.
func (t *Task) Parent(ctx context.Context) (*Task, error) { return taskIfAny(ctx, t.record.Parent) }

// UserID is the user for whom the task is done.
func (t *Task) UserID() *string { return nilIfEmpty(t.record.User) }

// Failure is the reason of a failed task.
func (t *Task) Failure() *TaskFailure { return shownFailure(t.record.Failure) }

func shownFailure(f *tasks.Failure) *TaskFailure {
	if f == nil {
		return nil
	}
	return &TaskFailure{Code: f.Code, Message: f.Message, Details: f.Details}
}

// CreatedAt is when the task was created.
func (t *Task) CreatedAt() time.Time { return t.record.Created }

// UpdatedAt is when the task changed last.
func (t *Task) UpdatedAt() time.Time { return t.record.Updated }

// Version increases with each change of the task.
func (t *Task) Version() int64 { return t.record.Version }

// Entity is the task as an entity.
func (t *Task) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return knowledge.ReadOwnEntity(ctx, f, t.record.ID.Entity())
}

// Artifacts reads the artifacts of the task.
func (t *Task) Artifacts(ctx context.Context) ([]Artifact, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	whole := t.record
	if !t.complete {
		if whole, err = service.Get(ctx, by, t.record.ID, tasks.ReadOptions{Artifacts: true}); err != nil {
			return nil, err
		}
	}
	out := make([]Artifact, len(whole.Artifacts))
	for i := range whole.Artifacts {
		out[i] = Artifact{record: &whole.Artifacts[i], task: t.record.ID}
		if err := r.chargeBytes(out[i].byteSize()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// TaskMessage is a message of a task.
type TaskMessage struct{ record *tasks.Message }

func shownMessage(m *tasks.Message) *TaskMessage {
	if m == nil {
		return nil
	}
	return &TaskMessage{m}
}

// MessageID is the id that the sender gave.
func (m *TaskMessage) MessageID() string { return m.record.ID }

// Role is the author's role in the task.
func (m *TaskMessage) Role() TaskRole { return TaskRole(m.record.Role) }

// Author is the agent that sent the message.
func (m *TaskMessage) Author() *Agent { return agentOf(m.record.Author) }

// AuthorID is the id of that agent.
func (m *TaskMessage) AuthorID() string { return string(m.record.Author) }

// Parts is the content of the message.
func (m *TaskMessage) Parts() []Part { return shownParts(m.record.Parts) }

// Text joins the texts of the parts.
func (m *TaskMessage) Text() string { return textOf(m.record.Parts) }

// Metadata is a JSON object, nil for none.
func (m *TaskMessage) Metadata() json.RawMessage { return m.record.Metadata }

// Extensions are the URIs of the extensions that the message follows.
func (m *TaskMessage) Extensions() []string { return notNil(m.record.Extensions) }

// ReferenceTaskIds are the ids of related tasks.
func (m *TaskMessage) ReferenceTaskIds() []string { return idTexts(m.record.References) }

func idTexts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = string(text)
	}
	return out
}

// Time is when the message was sent.
func (m *TaskMessage) Time() time.Time { return m.record.Time }

// Part is a piece of content.
type Part struct{ record *tasks.Part }

func shownParts(parts []tasks.Part) []Part {
	out := make([]Part, len(parts))
	for i := range parts {
		out[i] = Part{&parts[i]}
	}
	return out
}

func textOf(parts []tasks.Part) string {
	var lines []string
	for i := range parts {
		if text := parts[i].Text; text != nil {
			lines = append(lines, *text)
		}
	}
	return strings.Join(lines, "\n")
}

// Kind is the kind of the content.
func (p *Part) Kind() PartKind {
	switch {
	case p.record.Text != nil:
		return PartKindText
	case p.record.Raw != nil:
		return PartKindRaw
	case p.record.URL != nil:
		return PartKindURL
	}
	return PartKindData
}

// Text is set for a part of kind text.
func (p *Part) Text() *string { return p.record.Text }

// Raw is base64.
func (p *Part) Raw() *string { return p.record.Raw }

// URL is the location of the content.
func (p *Part) URL() *string { return p.record.URL }

// Data is any JSON.
func (p *Part) Data() json.RawMessage { return p.record.Data }

// MediaType is the media type of the content.
func (p *Part) MediaType() *string { return nilIfEmpty(p.record.MediaType) }

// Filename is the file name of the content.
func (p *Part) Filename() *string { return nilIfEmpty(p.record.Filename) }

// Metadata is a JSON object, nil for none.
func (p *Part) Metadata() json.RawMessage { return p.record.Metadata }

// Tasks answers Query.tasks.
func (*queryRoot) Tasks(
	ctx context.Context, createdByMe, handledByMe bool, contextID, handler *string, states []TaskState, parentID *string, since *time.Time, first *int, after *Cursor,
) (*TaskConnection, error) {
	q := tasks.Query{Created: createdByMe, Handled: handledByMe, Context: deref(contextID), Parent: tasks.TaskID(deref(parentID))}
	if handler != nil {
		q.Handler = kg.CanonicalAgent(*handler)
	}
	for _, s := range states {
		q.States = append(q.States, tasks.State(s))
	}
	q.Since = deref(since)
	return runOf(ctx).listTasks(ctx, first, after, q)
}

func (r *run) listTasks(ctx context.Context, first *int, after *Cursor, q tasks.Query) (*TaskConnection, error) {
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("tasks", knowledge.PageArgs{First: first}, tasks.MaxPage)
	if err != nil {
		return nil, err
	}
	q.First = p.size
	q.After = string(deref(after))
	page, err := service.List(ctx, by, q)
	if kg.CodeOf(err) == kg.CodeCursorForeign {
		err = kg.AsError(err).At("after")
	}
	if err != nil {
		return nil, err
	}
	out := &TaskConnection{
		nodes: make([]Task, len(page.Tasks)), begun: after != nil, more: page.Next != "", list: "tasks", count: exactly(page.Total),
		seal: func(k int) Cursor { return Cursor(page.Cursor(k)) },
	}
	for i := range page.Tasks {
		out.nodes[i] = Task{record: &page.Tasks[i]}
	}
	return out, chargeAll(r, page.Tasks, sizeOfTask)
}

// Subtasks reads the subtasks of the task.
func (t *Task) Subtasks(ctx context.Context, first *int, after *Cursor) (*TaskConnection, error) {
	return runOf(ctx).listTasks(ctx, first, after, tasks.Query{Parent: t.record.ID})
}

// Messages reads a page of the task's messages, which are numbered from 1 on.
func (t *Task) Messages(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*TaskMessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("task.messages", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, tasks.MaxPage, t.record.ID)
	if err != nil {
		return nil, err
	}
	// The page ends at the task's loaded version. Later messages come with its
	// next version.
	from, to := p.numbers(0, int64(t.record.Messages))
	list, err := service.Messages(ctx, by, t.record.ID, int(from-1), int(to-from+1))
	if err == nil {
		err = chargeAll(r, list, func(m *tasks.Message) int { return sizeOfParts(m.Parts) + len(m.Metadata) })
	}
	if err != nil {
		return nil, err
	}
	page := &TaskMessageConnection{
		nodes: make([]TaskMessage, len(list)), backward: p.backward, begun: p.begun, more: to < int64(t.record.Messages), list: p.list, count: exactly(t.record.Messages),
		seal: func(k int) Cursor { return p.seal(strconv.FormatInt(from+int64(k), 10)) },
	}
	if p.backward {
		page.more = from > 1
	}
	for i := range list {
		page.nodes[i] = TaskMessage{&list[i]}
	}
	return page, nil
}
