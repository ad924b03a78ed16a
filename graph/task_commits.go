package graph

import (
	"context"
	"strconv"

	"koine/internal/tasks"
	"koine/kg"
)

// TaskCommit is a commit that was made for a task.
type TaskCommit struct{ of *kg.Commit }

// Commits reads a page of what was made for the task. Its cursors are revisions.
func (t *Task) Commits(ctx context.Context, first *int, after *Cursor) (*TaskCommitConnection, error) {
	r := runOf(ctx)
	page, err := r.taskPage(first, after)
	if err != nil {
		return nil, err
	}
	list, err := page.service.Commits(ctx, page.by, t.of.ID, kg.Revision(page.behind), page.size)
	if err != nil {
		return nil, err
	}
	next := ""
	if list.Next > 0 {
		next = strconv.FormatUint(uint64(list.Next), 10)
	}
	size := func(c *kg.Commit) int { return len(c.Justification) }
	nodes, err := nodesOf(r, list.Commits, func(c *kg.Commit) TaskCommit { return TaskCommit{c} }, size)
	return &TaskCommitConnection{Nodes: nodes, PageInfo: tokenPage(after, next)}, err
}

// Commit itself.
func (c *TaskCommit) Commit(ctx context.Context) *Commit { return runOf(ctx).commitOf(c.of) }

// Message is the one that it came with, nil for none and where the caller may not read it.
func (c *TaskCommit) Message(ctx context.Context) (*Message, error) {
	return runOf(ctx).messageBehind(ctx, c.of.Revision)
}

// Facts are what it asserted; the engine writes them.
func (c *TaskCommit) Facts(ctx context.Context, first *int) ([]Statement, error) {
	return nil, readFacts(ctx, first, func(context.Context, *run) ([]*kg.Commit, error) { return []*kg.Commit{c.of}, nil })
}

// TaskID is the task that the message was published for, as its author says.
func (m *Message) TaskID(ctx context.Context) (*string, error) {
	c, err := runOf(ctx).commitSeen(ctx, m.of.Revision)
	if c == nil || err != nil {
		return nil, err
	}
	return some(c.TaskID), nil
}

// Task is that task, nil where the caller or the author takes no part in it.
func (m *Message) Task(ctx context.Context) (*Task, error) {
	return runOf(ctx).taskBehind(ctx, m.of.Revision)
}

// commitSeen is a commit as the caller sees it, nil where it does not or the log has it
// no more.
func (r *run) commitSeen(ctx context.Context, revision kg.Revision) (*kg.Commit, error) {
	if revision == 0 {
		return nil, nil
	}
	c, err := r.engine.deps.Store.Commit(ctx, r.request.Principal, revision)
	switch kg.CodeOf(err) {
	case kg.CodeNotFound, kg.CodeRevisionGone:
		return nil, nil
	}
	return c, err
}

// taskBehind is the task that a commit was made for; nil for none and where the caller
// takes no part in it, or does not see all of the commit.
func (r *run) taskBehind(ctx context.Context, revision kg.Revision) (*Task, error) {
	return ofCommit(r, &r.madeFor, revision, func() (*Task, error) {
		c, err := r.commitSeen(ctx, revision)
		if c == nil || err != nil {
			return nil, err
		}
		t, err := taskIfAny(ctx, tasks.TaskID(c.TaskID))
		if t == nil || err != nil || !tasks.MadeFor(c, t.of) {
			return nil, err
		}
		return t, nil
	})
}
