package graph

import (
	"context"
	"strconv"
	"time"

	"koine/internal/tasks"
	"koine/kg"
)

// readTasks answers Query.tasks.
func readTasks(ctx context.Context, first *int, after *Cursor, q tasks.Query, handler *string, states []TaskState, since *time.Time) (*TaskConnection, error) {
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
	if q.First, err = r.domainPage(first, tasks.MaxPage); err != nil {
		return nil, err
	}
	q.After = string(deref(after))
	page, err := service.List(ctx, by, q)
	if kg.CodeOf(err) == kg.CodeCursorForeign {
		err = kg.AsError(err).At("after")
	}
	if err != nil {
		return nil, err
	}
	size := func(t tasks.Task) int { return sizeOfTask(&t) }
	nodes, err := nodesOf(r, page.Tasks, func(t tasks.Task) Task { return Task{record: &t} }, size)
	return &TaskConnection{Nodes: nodes, PageInfo: tokenPage(after, page.Next), TotalCount: page.Total}, err
}

// taskPage describes a page of a task's messages or commits, and the caller.
type taskPage struct {
	service     *tasks.Service
	by          tasks.Caller
	size        int
	afterNumber int64 // number in the cursor
}

func (r *run) taskPage(first *int, after *Cursor) (p taskPage, err error) {
	if p.service, p.by, err = r.taskService(); err != nil {
		return p, err
	}
	if p.size, err = r.domainPage(first, tasks.MaxPage); err != nil {
		return p, err
	}
	p.afterNumber, err = parseNumberCursor(after)
	return p, err
}

// Subtasks reads the subtasks of the task.
func (t *Task) Subtasks(ctx context.Context, first *int, after *Cursor) (*TaskConnection, error) {
	return runOf(ctx).listTasks(ctx, first, after, tasks.Query{Parent: t.record.ID})
}

// Messages reads a page of the task's messages. Its cursors are message
// numbers.
func (t *Task) Messages(ctx context.Context, first *int, after *Cursor) (*TaskMessageConnection, error) {
	r := runOf(ctx)
	page, err := r.taskPage(first, after)
	if err != nil {
		return nil, err
	}
	// The page ends at the task's loaded version. Later messages come with its
	// next version.
	behind := int(min(page.afterNumber, int64(t.record.Messages)))
	list, err := page.service.Messages(ctx, page.by, t.record.ID, behind, min(page.size, t.record.Messages-behind))
	if err != nil {
		return nil, err
	}
	next := ""
	if behind+page.size < t.record.Messages {
		next = strconv.Itoa(behind + page.size)
	}
	size := func(m tasks.Message) int { return sizeOfParts(m.Parts) + len(m.Metadata) }
	nodes, err := nodesOf(r, list, func(m tasks.Message) TaskMessage { return TaskMessage{&m} }, size)
	return &TaskMessageConnection{Nodes: nodes, PageInfo: tokenPage(after, next)}, err
}
