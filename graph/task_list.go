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
	out := &TaskConnection{Nodes: make([]Task, len(page.Tasks)), PageInfo: tokenPage(after, page.Next), TotalCount: page.Total}
	for i := range page.Tasks {
		out.Nodes[i] = Task{of: &page.Tasks[i]}
		if err := r.charge(sizeOfTask(&page.Tasks[i])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// taskPage is the size of a page of tasks or their messages.
func (r *run) taskPage(first *int) (int, error) {
	if first != nil && *first < 1 {
		return 0, kg.Errorf(kg.CodeInvalid, "first is at least 1").At("first")
	}
	limits := r.engine.limits
	limits.PageSize = min(limits.PageSize, tasks.MaxPage)
	return limits.pageSize(first, DefaultPageSize)
}

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
	out := &TaskMessageConnection{Nodes: make([]TaskMessage, len(list)), PageInfo: tokenPage(after, next)}
	for i := range list {
		out.Nodes[i] = TaskMessage{&list[i]}
		if err := r.charge(sizeOfParts(list[i].Parts) + len(list[i].Metadata)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
