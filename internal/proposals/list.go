package proposals

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"koine/kg"
)

// Limits of List.
const (
	DefaultPage = 25
	MaxPage     = 100
	// MaxPageBytes limits the stored size of the patches in a page; a page has at least
	// one proposal in any case.
	MaxPageBytes = 8 << 20
)

// Query selects proposals.
type Query struct {
	Status Status     // "" for any
	Author kg.AgentID // principal or acting agent; "" for any
	First  int        // DefaultPage when 0
	// Behind is the id of the proposal behind which the page begins; "" for the first
	// page. With Backward the newest come first.
	Behind   string
	Backward bool
}

// Page is a page of proposals, oldest first unless Query.Backward.
type Page struct {
	Proposals []*Proposal
	More      bool
}

// systemView returns a snapshot of everything at a revision, 0 for the newest.
func (s *Service) systemView(ctx context.Context, at kg.Revision) (*kg.Snapshot, error) {
	return s.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, At: at})
}

// Get returns a proposal that the caller may read, without the patches that are hidden
// from it. Otherwise the error is CodeNotFound.
func (s *Service) Get(ctx context.Context, by Caller, id string) (*Proposal, error) {
	p, err := s.getWhole(ctx, by, id, 0)
	if err != nil {
		return nil, err
	}
	return s.withoutHidden(p.statusAt(s.options.Clock()), by.Principal), nil
}

// GetAt is Get as of a revision, with the status recorded at that time.
func (s *Service) GetAt(ctx context.Context, by Caller, id string, r kg.Revision) (*Proposal, error) {
	p, err := s.getWhole(ctx, by, id, r)
	if err != nil {
		return nil, err
	}
	return s.withoutHidden(p, by.Principal), nil
}

// getWhole is GetAt with all patches; at is 0 for the newest revision.
func (s *Service) getWhole(ctx context.Context, by Caller, id string, at kg.Revision) (*Proposal, error) {
	e, ok := s.table.get(id)
	if !ok || !by.Principal.Trusted() && !s.table.readableBy(e, by.Principal) {
		return nil, errNotFound(id)
	}
	snapshot, err := s.systemView(ctx, at)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	p, err := readProposal(snapshot.Match, id, true)
	if err == nil && p == nil {
		err = errNotFound(id)
	}
	return p, err
}

// Patterns returns the patterns of statements that change with a proposal, or with any
// for "".
func Patterns(id string) []kg.Pattern {
	patterns := []kg.Pattern{{Predicate: propStatus}, {Predicate: propReview}}
	for i := range patterns {
		if id != "" {
			patterns[i].Graph = graphOf(id)
		}
	}
	return patterns
}

// StatusPatterns returns those of Patterns that match one statement for each
// proposal.
func StatusPatterns(id string) []kg.Pattern { return Patterns(id)[:1] }

// ParseEvent returns the proposal that an event of Patterns is about. Of the events of one
// commit only one counts.
func ParseEvent(e *kg.Event) (id string, counts bool) {
	q := e.Statement.Quad
	id, counts = strings.CutPrefix(q.Graph.Value(), kg.ProposalGraphPrefix)
	if !counts || e.Op == kg.Remove {
		return id, false
	}
	if q.Predicate != propReview || e.Commit == nil {
		return id, q.Predicate == propStatus
	}
	for i := range e.Commit.Changes { // the event of its status reports the end
		if c := &e.Commit.Changes[i]; c.Op == kg.Add && c.Quad.Graph == q.Graph && c.Quad.Predicate == propStatus {
			return id, false
		}
	}
	return id, true
}

// inOrder returns the ids behind Query.Behind in the order of the page. after lists
// those after an id, in order.
func (q *Query) inOrder(after func(id string) []string) []string {
	if !q.Backward {
		return after(q.Behind)
	}
	ids := slices.Clone(after(""))
	if q.Behind != "" {
		at, _ := slices.BinarySearch(ids, q.Behind)
		ids = ids[:at]
	}
	slices.Reverse(ids)
	return ids
}

// MaxCounted bounds the proposals that Count reads.
const MaxCounted = 10_000

// Count counts the proposals of List, on all pages. exact is false if it ended after
// MaxCounted proposals that had to be read.
func (s *Service) Count(ctx context.Context, by Caller, q Query) (n int, exact bool, err error) {
	q.First, q.Behind, q.Backward = MaxPage, "", false
	for n < MaxCounted {
		page, err := s.List(ctx, by, q)
		if err != nil {
			return 0, false, err
		}
		if n += len(page.Proposals); !page.More {
			return n, true, nil
		}
		q.Behind = page.Proposals[len(page.Proposals)-1].ID
	}
	return n, false, nil
}

// List lists the proposals that the caller may read, a page at a time.
func (s *Service) List(ctx context.Context, by Caller, q Query) (*Page, error) {
	if q.First = cmp.Or(q.First, DefaultPage); q.First < 0 || q.First > MaxPage {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "first must be between 1 and %d, not %d", MaxPage, q.First).At("first")
	}
	q.Author = kg.CanonicalAgent(string(q.Author))
	snapshot, err := s.systemView(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	page, bytes := &Page{}, 0
	now := s.options.Clock()
	ids := s.table.lists.listAll
	if q.Status == Pending {
		ids = s.table.lists.listOpen
	}
	for _, id := range q.inOrder(ids) {
		e, _ := s.table.get(id)
		if !by.Principal.Trusted() && !s.table.readableBy(e, by.Principal) || q.Author != "" && q.Author != e.author && q.Author != e.actor {
			continue
		}
		if waits := e.open && now.Before(e.expires); q.Status == Pending && !waits || q.Status != "" && q.Status != Pending && waits {
			continue // without reading it
		}
		p, err := readProposal(snapshot.Match, id, true)
		if err != nil {
			return nil, err
		}
		if p == nil || q.Status != "" && p.statusAt(now).Status != q.Status {
			continue // created after the snapshot, or of another status
		}
		if bytes += p.bytes; len(page.Proposals) == q.First || len(page.Proposals) > 0 && bytes > MaxPageBytes {
			page.More = true
			break
		}
		page.Proposals = append(page.Proposals, s.withoutHidden(p.statusAt(now), by.Principal))
	}
	return page, nil
}
