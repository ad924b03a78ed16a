package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Query says which tasks are listed, of those that the caller may see.
type Query struct {
	// Handled lists what the caller handles, Created what it asked for; neither is
	// both, and for an administrator all there are.
	Created, Handled bool
	Context          string
	Handler          kg.AgentID
	States           []State
	Parent           TaskID
	// Since is the time of the last change that a task must have had, at least.
	Since time.Time
	// ByStatus takes the last status for the last change, in Since and in the order: what
	// was said and handed over behind it does not count.
	ByStatus bool
	// First is how many, clamped to 1…MaxPage; 0 is DefaultPage. After is the Next of
	// the page before.
	First   int
	After   string
	Reading Reading
}

// Page is a part of the tasks that there are, those that changed last first.
type Page struct {
	Tasks []Task
	Next  string // "" for the last page
	Total int    // of all pages
}

// List lists tasks. A task that changes while pages are read moves to the front.
//
// Errors: CodeCursorForeign for a token that is not of this list; CodeLimitExceeded
// where there is more to look at than Options.MaxListed.
func (s *Service) List(ctx context.Context, by caller.Caller, q Query) (*Page, error) {
	snapshot, err := s.view(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return s.list(snapshot, by, q)
}

func (s *Service) list(snapshot *kg.Snapshot, by caller.Caller, q Query) (*Page, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	bound, err := q.bound(agent)
	if err != nil {
		return nil, err
	}
	after := front
	if q.After != "" {
		raw, err := s.store.Unseal(q.After, bound)
		if err != nil {
			return nil, err
		}
		if after, err = parseRank(raw); err != nil {
			return nil, err
		}
	}
	l, err := q.listing(snapshot, by, agent, s.options.MaxListed)
	if err != nil {
		return nil, err
	}
	first := min(max(cmp.Or(q.First, DefaultPage), 1), MaxPage)
	ranks, total, err := l.read(after, first+1)
	if err != nil {
		return nil, err
	}
	page := &Page{Total: total}
	if len(ranks) > first {
		ranks = ranks[:first]
		page.Next = s.store.Seal(ranks[first-1].bytes(), bound)
	}
	for _, p := range ranks {
		entity, err := snapshot.Term(p.task)
		if err != nil {
			return nil, err
		}
		t, err := readTask(snapshot, idOf(entity), q.Reading)
		if err != nil {
			return nil, err
		}
		page.Tasks = append(page.Tasks, *t)
	}
	return page, nil
}

// bound is what a token of the list is good for.
func (q *Query) bound(agent kg.AgentID) ([]byte, error) {
	return json.Marshal([]any{"tasks", agent, q.Created, q.Handled, q.Context, q.Handler, q.States, q.Parent, q.Since.UnixMilli(), q.ByStatus})
}
