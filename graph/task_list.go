package graph

import (
	"context"
	"strconv"
	"time"

	"koine/graph/internal/knowledge"
	"koine/internal/tasks"
	"koine/kg"
)

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
