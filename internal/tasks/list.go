package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Query selects the tasks of a list, among those that the caller may see.
type Query struct {
	// Handled selects the tasks that the caller handles, Created those that it created.
	// With neither set it selects both, and all tasks for an administrator.
	Created, Handled bool
	Context          string
	Handler          kg.AgentID
	States           []State
	Parent           TaskID
	// Since selects tasks that changed at or after this time.
	Since time.Time
	// ByStatus uses the time of the last status instead of the last change, in Since
	// and in the order: later messages and artifacts do not count.
	ByStatus bool
	// First is the page size, clamped to 1…MaxPage; 0 is DefaultPage. A page ends before the
	// task with which it would have more than Options.MaxReadBytes; if that is the first, its
	// History and Artifacts are left out (Task.Partial). After is the Next of the page before.
	First   int
	After   string
	Reading ReadOptions
}

// Page is a page of tasks, the last changed first.
type Page struct {
	Tasks []Task
	Next  string // "" for the last page
	Total int    // of all pages

	cursor func(i int) string
}

// Cursor returns the value of Query.After for the tasks behind the i-th of the page.
func (p *Page) Cursor(i int) string { return p.cursor(i) }

// List lists tasks. A task that changes while pages are read moves to the front.
//
// Errors: CodeCursorForeign for a cursor of another list; CodeLimitExceeded if more
// than Options.MaxListed entries would be read.
func (s *Service) List(ctx context.Context, by caller.Caller, q Query) (*Page, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return s.listAt(snapshot, by, q)
}

func (s *Service) listAt(snapshot *kg.Snapshot, by caller.Caller, q Query) (*Page, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	bound, err := q.cursorBinding(agent)
	if err != nil {
		return nil, err
	}
	after := firstRank
	if q.After != "" {
		raw, err := s.store.Unseal(q.After, bound)
		if err != nil {
			return nil, err
		}
		if after, err = parseRank(raw); err != nil {
			return nil, err
		}
	}
	l, err := q.resolve(snapshot, by, agent, s.options.MaxListed)
	if err != nil {
		return nil, err
	}
	first := min(max(cmp.Or(q.First, DefaultPage), 1), MaxPage)
	ranks, total, err := l.readRanks(after, first+1)
	if err != nil {
		return nil, err
	}
	page := &Page{Total: total, cursor: func(i int) string { return s.store.Seal(ranks[i].bytes(), bound) }}
	if len(ranks) > first {
		ranks = ranks[:first]
		page.Next = page.Cursor(first - 1)
	}
	spent := meter{limit: s.options.MaxReadBytes}
	for i, p := range ranks {
		entity, err := snapshot.Term(p.task)
		if err != nil {
			return nil, err
		}
		t, err := readTask(snapshot, IDOf(entity), q.Reading, &spent)
		if over := spent.refused || err == nil && spent.used > spent.limit; over && i > 0 {
			ranks = ranks[:i]
			page.Next = page.Cursor(i - 1)
			break
		}
		if spent.refused {
			spent = meter{limit: s.options.MaxReadBytes}
			t, err = readPartial(snapshot, IDOf(entity), &spent)
		}
		if err != nil {
			return nil, err
		}
		page.Tasks = append(page.Tasks, *t)
	}
	return page, nil
}

// cursorBinding returns the query that a cursor is bound to.
func (q *Query) cursorBinding(agent kg.AgentID) ([]byte, error) {
	return json.Marshal([]any{"tasks", agent, q.Created, q.Handled, q.Context, q.Handler, q.States, q.Parent, q.Since.UnixMilli(), q.ByStatus})
}
