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
	service, by, err := r.tasks()
	if err != nil {
		return nil, err
	}
	if q.First, err = r.taskPage(first); err != nil {
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
	nodes, err := nodesOf(r, page.Tasks, func(t tasks.Task) Task { return Task{of: &t} }, size)
	return &TaskConnection{Nodes: nodes, PageInfo: tokenPage(after, page.Next), TotalCount: page.Total}, err
}

// taskPage is the size of a page of tasks or their messages.
func (r *run) taskPage(first *int) (int, error) { return r.domainPage(first, tasks.MaxPage) }

// Subtasks reads the parts of the task.
func (t *Task) Subtasks(ctx context.Context, first *int, after *Cursor) (*TaskConnection, error) {
	return runOf(ctx).listTasks(ctx, first, after, tasks.Query{Parent: t.of.ID})
}

// Messages reads a page of what was said. Its cursors are numbers of messages.
func (t *Task) Messages(ctx context.Context, first *int, after *Cursor) (*TaskMessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.tasks()
	if err != nil {
		return nil, err
	}
	n, err := r.taskPage(first)
	if err != nil {
		return nil, err
	}
	behind := 0
	if after != nil {
		if behind, err = strconv.Atoi(string(*after)); err != nil || behind < 1 {
			return nil, kg.Errorf(kg.CodeCursorForeign, "the cursor is not of this list").At("after")
		}
	}
	// Up to what is told of the task: later ones come with its next version.
	list, err := service.Messages(ctx, by, t.of.ID, behind, min(n, max(t.of.Messages-behind, 0)))
	if err != nil {
		return nil, err
	}
	next := ""
	if behind+n < t.of.Messages {
		next = strconv.Itoa(behind + n)
	}
	size := func(m tasks.Message) int { return sizeOfParts(m.Parts) + len(m.Metadata) }
	nodes, err := nodesOf(r, list, func(m tasks.Message) TaskMessage { return TaskMessage{&m} }, size)
	return &TaskMessageConnection{Nodes: nodes, PageInfo: tokenPage(after, next)}, err
}
