package tasks

import (
	"cmp"
	"context"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// CommitPage is a part of the commits that were made for a task.
type CommitPage struct {
	Commits []*kg.Commit
	// Next is the revision behind which it goes on; 0 for the last page.
	Next kg.Revision
}

// MadeFor tells whether a commit was made for a task: it says so, and is of the task's
// creator or handler. What others say of it is not taken for true.
func MadeFor(c *kg.Commit, t *Task) bool {
	actor := cmp.Or(c.Actor, c.Principal)
	return c.TaskID == string(t.ID) && (actor == t.Creator || actor == t.Handler)
}

// Commits lists up to most commits that were made for a task, the oldest first, behind
// a revision: those that the log still has and the caller sees all of. It looks at
// Options.MaxCommits; a page may be short and not the last.
//
// Errors: CodeTaskNotFound.
func (s *Service) Commits(ctx context.Context, by caller.Caller, id TaskID, behind kg.Revision, most int) (*CommitPage, error) {
	t, err := s.Get(ctx, by, id, Reading{})
	if err != nil {
		return nil, err
	}
	if behind == 0 {
		// Nothing names it before it is made; times are told in whole milliseconds.
		behind, err = s.store.RevisionAt(ctx, t.Created.Add(-time.Second))
		if err != nil && kg.CodeOf(err) != kg.CodeRevisionGone {
			return nil, err
		}
	}
	behind = max(behind, s.store.Oldest().Revision)
	page, head := new(CommitPage), s.store.Head().Revision
	for r := behind + 1; r <= head; r++ {
		if r > behind+kg.Revision(s.options.MaxCommits) {
			page.Next = r - 1
			break
		}
		c, err := s.store.Commit(ctx, by.Principal, r)
		switch {
		case kg.CodeOf(err) == kg.CodeNotFound || kg.CodeOf(err) == kg.CodeRevisionGone:
			continue
		case err != nil:
			return nil, err
		case !MadeFor(c, t):
			continue
		case len(page.Commits) == most:
			page.Next = r - 1
			return page, nil
		}
		page.Commits = append(page.Commits, c)
	}
	return page, nil
}
