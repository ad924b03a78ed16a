package tasks

import (
	"cmp"
	"context"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// CommitPage is a page of the commits made for a task.
type CommitPage struct {
	Commits []*kg.Commit
	// Next is the revision after which the next page starts; 0 on the last page.
	Next kg.Revision
}

// MadeFor reports whether a commit was made for a task: it names the task, and was made
// by the task's creator or handler. Commits of others that name the task are ignored.
func MadeFor(c *kg.Commit, t *Task) bool {
	actor := cmp.Or(c.Actor, c.Principal)
	return c.TaskID == string(t.ID) && (actor == t.Creator || actor == t.Handler)
}

// Commits lists up to limit commits made for a task after a revision, the oldest first,
// leaving out those that the log no longer has or that the caller does not see in full.
// It reads at most Options.MaxCommits commits, so a page may be short without being the
// last.
//
// Errors: CodeTaskNotFound.
func (s *Service) Commits(ctx context.Context, by caller.Caller, id TaskID, after kg.Revision, limit int) (*CommitPage, error) {
	t, err := s.Get(ctx, by, id, ReadOptions{})
	if err != nil {
		return nil, err
	}
	if after == 0 {
		// No commit names the task before it exists. Times are in whole milliseconds.
		after, err = s.store.Resolve(ctx, kg.Moment{Time: t.Created.Add(-time.Second)})
		if err != nil && kg.CodeOf(err) != kg.CodeRevisionGone {
			return nil, err
		}
	}
	after = max(after, s.store.Oldest().Revision)
	page, head := new(CommitPage), s.store.Head().Revision
	for r := after + 1; r <= head; r++ {
		if r > after+kg.Revision(s.options.MaxCommits) {
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
		case len(page.Commits) == limit:
			page.Next = r - 1
			return page, nil
		}
		page.Commits = append(page.Commits, c)
	}
	return page, nil
}
