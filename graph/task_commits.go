package graph

import (
	"context"
	"strconv"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/tasks"
	"koine/kg"
)

// TaskCommit is a commit that was made for a task.
type TaskCommit struct{ record *kg.Commit }

// Commits reads a page of the commits made for the task.
func (t *Task) Commits(ctx context.Context, first *int, after *Cursor) (*TaskCommitConnection, error) {
	r := runOf(ctx)
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("task.commits", knowledge.PageArgs{First: first, After: after}, tasks.MaxPage, t.record.ID)
	if err != nil {
		return nil, err
	}
	behind, _ := strconv.ParseUint(p.key, 10, 64) // sealed by this list
	found, err := service.Commits(ctx, by, t.record.ID, kg.Revision(behind), p.size)
	if err == nil {
		err = chargeAll(r, found.Commits, func(c **kg.Commit) int { return len((*c).Justification) })
	}
	if err != nil {
		return nil, err
	}
	end := ""
	if found.Next > 0 {
		end = strconv.FormatUint(uint64(found.Next), 10)
	}
	key := func(c **kg.Commit) string { return strconv.FormatUint(uint64((*c).Revision), 10) }
	page := newListPage(p, found.Commits, found.Next > 0, end, key, func(c **kg.Commit) TaskCommit { return TaskCommit{*c} })
	page.count = func(ctx context.Context) (n int64, exact bool, err error) {
		var behind kg.Revision
		for range limit.MaxCountedPages {
			found, err := service.Commits(ctx, by, t.record.ID, behind, tasks.MaxPage)
			if err != nil {
				return 0, false, err
			}
			if n += int64(len(found.Commits)); found.Next == 0 {
				return n, true, nil
			}
			behind = found.Next
		}
		return n, false, nil
	}
	return page, nil
}

// Commit is the commit.
func (c *TaskCommit) Commit(ctx context.Context) *Commit { return runOf(ctx).commitOf(c.record) }

// Message is the message that the commit came with, nil for none and if the
// caller may not read it.
func (c *TaskCommit) Message(ctx context.Context) (*Message, error) {
	return runOf(ctx).messageOfCommit(ctx, c.record.Revision)
}

// Facts are the statements that the commit asserted.
func (c *TaskCommit) Facts(ctx context.Context, f *executor.Selected, args *taskCommitFactsArgs) (executor.Value, error) {
	return readFacts(ctx, f, strconv.FormatUint(uint64(c.record.Revision), 10), knowledge.PageArgs{First: args.First, After: args.After}, func(context.Context, *run) ([]*kg.Commit, error) { return []*kg.Commit{c.record}, nil })
}

// TaskID is the id of the task that the author published the message for.
func (m *Message) TaskID(ctx context.Context) (*string, error) {
	c, err := runOf(ctx).commitSeen(ctx, m.record.Revision)
	if c == nil || err != nil {
		return nil, err
	}
	return nilIfEmpty(c.TaskID), nil
}

// Task is that task, nil if the caller or the author takes no part in it.
func (m *Message) Task(ctx context.Context) (*Task, error) {
	return runOf(ctx).taskOfCommit(ctx, m.record.Revision)
}

// commitSeen returns a commit as the caller sees it, nil if the caller may not
// see it or the log no longer has it.
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

// taskOfCommit returns the task that a commit was made for. It is nil if there
// is none, if the caller takes no part in it, or if the caller may not see the
// whole commit.
func (r *run) taskOfCommit(ctx context.Context, revision kg.Revision) (*Task, error) {
	return ofCommit(r, &r.commitTasks, revision, func() (*Task, error) {
		c, err := r.commitSeen(ctx, revision)
		if c == nil || err != nil {
			return nil, err
		}
		t, err := taskIfAny(ctx, tasks.TaskID(c.TaskID))
		if t == nil || err != nil || !tasks.MadeFor(c, t.record) {
			return nil, err
		}
		return t, nil
	})
}
