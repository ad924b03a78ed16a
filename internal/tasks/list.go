package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"koine/internal/caller"
	"koine/internal/records"
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

// listed is a task's place in the list: by the commit that changed it last.
type listed struct {
	Changed kg.Revision `json:"r"`
	ID      TaskID      `json:"i"`
}

func (a listed) compare(b listed) int {
	return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(b.ID, a.ID))
}

// List lists tasks. A task that changes while pages are read moves to the front.
//
// Errors: CodeCursorForeign for a token that is not of this list; CodeLimitExceeded
// where there are more than MaxListed to look at.
func (s *Service) List(ctx context.Context, by caller.Caller, q Query) (*Page, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	bound, err := q.bound(agent)
	if err != nil {
		return nil, err
	}
	var after listed
	if q.After != "" {
		raw, err := s.store.Unseal(q.After, bound)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &after); err != nil {
			return nil, err
		}
	}
	snapshot, err := s.view(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	all, err := q.find(snapshot, by, agent)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, listed.compare)
	page := &Page{Total: len(all)}
	if q.After != "" {
		at, there := slices.BinarySearchFunc(all, after, listed.compare)
		if there {
			at++
		}
		all = all[at:]
	}
	first := min(max(cmp.Or(q.First, DefaultPage), 1), MaxPage)
	if len(all) > first {
		all = all[:first]
		raw, err := json.Marshal(all[first-1])
		if err != nil {
			return nil, err
		}
		page.Next = s.store.Seal(raw, bound)
	}
	for _, l := range all {
		t, err := readTask(snapshot, l.ID, q.Reading)
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

// find looks at all tasks that may be meant.
func (q *Query) find(s *kg.Snapshot, by caller.Caller, agent kg.AgentID) (out []listed, err error) {
	me := kg.IRI(string(agent))
	created, handled := kg.Pattern{Predicate: records.Property(propCreator), Object: me}, kg.Pattern{Predicate: records.Property(propHandler), Object: me}
	var patterns []kg.Pattern
	switch all := agent == by.Principal.ID && administers(by.Principal); {
	case all && !q.Created && !q.Handled:
		patterns = []kg.Pattern{{Predicate: rdfType, Object: classOfTask}}
	case q.Created == q.Handled:
		patterns = []kg.Pattern{created, handled}
	case q.Created:
		patterns = []kg.Pattern{created}
	default:
		patterns = []kg.Pattern{handled}
	}
	seen := map[TaskID]bool{}
	for _, p := range patterns {
		for st, err := range s.Match(p) {
			if err != nil {
				return nil, err
			}
			id := idOf(st.Subject)
			if _, _, ours := pairOf(st.Graph); !ours || id == "" || seen[id] {
				continue
			}
			if seen[id] = true; len(seen) > MaxListed {
				return nil, errTooMuch("", "there are more than %d tasks to look at: ask for fewer", MaxListed)
			}
			r, err := records.Read(s.Match, st.Graph, st.Subject)
			if err != nil {
				return nil, err
			}
			if !q.wants(taskOf(id, r)) {
				continue
			}
			of := propVersion
			if q.ByStatus {
				of = propStatus
			}
			changed, err := lastChange(s, st.Graph, id, of)
			if err != nil {
				return nil, err
			}
			out = append(out, listed{changed, id})
		}
	}
	return out, nil
}

func (q *Query) wants(t *Task) bool {
	changed := t.Updated
	if q.ByStatus {
		changed = t.Status.Time
	}
	return (q.Context == "" || t.Context == q.Context) && (q.Handler == "" || t.Handler == q.Handler) && (q.Parent == "" || t.Parent == q.Parent) &&
		(len(q.States) == 0 || slices.Contains(q.States, t.Status.State)) && !changed.Before(q.Since)
}

// lastChange is the commit that changed a property of the task last; the version
// changes with all.
func lastChange(s *kg.Snapshot, graph kg.Term, id TaskID, of string) (at kg.Revision, err error) {
	for st, err := range s.Match(kg.Pattern{Subject: id.Entity(), Predicate: records.Property(of), Graph: graph}) {
		if err != nil {
			return 0, err
		}
		at = st.Assertions[0].Revision
	}
	return at, nil
}
