package graph

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/kg"
)

// listPage is a page of a list of a domain: a connection of the schema. Edges,
// cursors and the count are made only if they are selected.
type listPage[N any] struct {
	nodes    []N
	seal     func(k int) Cursor // makes the cursor of the k-th node
	sealed   []Cursor           // the cursors made so far
	backward bool
	begun    bool          // the page continues one before it, in its direction
	more     bool          // the list goes on behind the page, in its direction
	end      func() Cursor // of the page's end if that is not its last node; nil otherwise
	// count counts the list. exact is false if it ended before the end of the
	// list.
	count func(ctx context.Context) (n int64, exact bool, err error)
	list  string // the name of the list, for the hint of a count that was ended
}

// listEdge is a node of a listPage with its cursor.
type listEdge[N any] struct {
	page *listPage[N]
	k    int
}

// Nodes are the elements of the page.
func (p *listPage[N]) Nodes() []N { return p.nodes }

// Edges are the elements of the page with their cursors.
func (p *listPage[N]) Edges() []listEdge[N] {
	out := make([]listEdge[N], len(p.nodes))
	for k := range out {
		out[k] = listEdge[N]{p, k}
	}
	return out
}

// PageInfo tells how to go on.
func (p *listPage[N]) PageInfo() *PageInfo {
	info := &PageInfo{HasNextPage: p.more, HasPreviousPage: p.begun, end: p.end}
	if p.backward {
		info.HasNextPage, info.HasPreviousPage, info.start, info.end = p.begun, p.more, p.end, nil
	}
	if n := len(p.nodes); n > 0 {
		if info.start == nil {
			info.start = func() Cursor { return p.cursor(0) }
		}
		if info.end == nil {
			info.end = func() Cursor { return p.cursor(n - 1) }
		}
	}
	return info
}

// PageInfo tells how to go on from a page of a domain's list.
type PageInfo struct {
	HasNextPage, HasPreviousPage bool
	Truncated                    bool          // only planned lists can be
	start, end                   func() Cursor // nil for an empty page
}

// StartCursor is the cursor before which the list goes on, nil for an empty page.
func (i *PageInfo) StartCursor() *Cursor { return cursorIfAny(i.start) }

// EndCursor is the cursor after which the list goes on, nil for an empty page.
func (i *PageInfo) EndCursor() *Cursor { return cursorIfAny(i.end) }

func cursorIfAny(seal func() Cursor) *Cursor {
	if seal == nil {
		return nil
	}
	c := seal()
	return &c
}

// TotalCount counts the elements of all pages. It is nil, with a hint, if
// counting was ended by a bound.
func (p *listPage[N]) TotalCount(ctx context.Context) (*int64, error) {
	n, exact, err := p.count(ctx)
	if err != nil {
		return nil, err
	}
	if !exact {
		runOf(ctx).NoteUncounted(p.list)
		return nil, nil
	}
	return &n, nil
}

// Node is the element.
func (e *listEdge[N]) Node() *N { return &e.page.nodes[e.k] }

// Cursor is the cursor of the element.
func (e *listEdge[N]) Cursor() Cursor { return e.page.cursor(e.k) }

// cursor returns the cursor of the k-th node, the same one each time.
func (p *listPage[N]) cursor(k int) Cursor {
	if p.sealed == nil {
		p.sealed = make([]Cursor, len(p.nodes))
	}
	if p.sealed[k] == "" {
		p.sealed[k] = p.seal(k)
	}
	return p.sealed[k]
}

// exactly is the count of a list of known length.
func exactly(n int) func(context.Context) (int64, bool, error) {
	return func(context.Context) (int64, bool, error) { return int64(n), true, nil }
}

// listRange is the part of a list that an operation asks for: size elements
// behind the key, in the direction of the page.
type listRange struct {
	run      *run
	list     string
	parts    []any // what else cursors are bound to
	bound    *knowledge.CursorBound
	size     int
	key      string // "" for the beginning of the list, or its end if the page goes backward
	begun    bool
	backward bool
}

// openRange reads the arguments of a list. Its cursors are bound to the name of
// the list and to bound: the other conditions on its elements. most bounds
// the size of a page, which unasked is if none was asked for.
func (r *run) openRange(list string, a knowledge.PageArgs, unasked, most int, bound ...any) (p listRange, err error) {
	p = listRange{run: r, list: list, parts: bound}
	limits := r.engine.limits
	limits.PageSize = min(limits.PageSize, most)
	size, cursor, backward, err := knowledge.PageDirection(a)
	if err != nil {
		return p, err
	}
	p.backward = backward
	if p.size, err = limits.CheckFirst(size, unasked); err != nil {
		return p, knowledge.InDirection(err, backward)
	}
	if cursor == nil {
		return p, nil
	}
	raw, err := r.engine.deps.Store.Unseal(string(*cursor), p.cursorBound())
	p.key, p.begun = string(raw), true
	return p, knowledge.InDirection(kgErrorAt(err, "after"), backward)
}

func kgErrorAt(err error, field string) error {
	if err == nil {
		return nil
	}
	return kg.AsError(err).At(field)
}

// cursorBound returns what the cursors of the list are bound to. Most pages are
// read without a cursor.
func (p *listRange) cursorBound() []byte {
	if p.bound == nil {
		r := p.run
		epoch := r.engine.deps.Store.Epoch()
		text, err := json.Marshal([]any{p.list, epoch.String(), r.request.Principal.ID, r.request.Actor, p.parts})
		if err != nil {
			panic(err) // cannot fail for the arguments of a field
		}
		sum := knowledge.CursorBound(sha256.Sum256(append([]byte("koine list 1\n"), text...)))
		p.bound = &sum
	}
	return p.bound[:]
}

// numbers returns the first and the last number of a page of elements that are
// numbered without gaps from since+1 to newest, and whose keys are their numbers.
// to is from-1 for an empty page.
func (p *listRange) numbers(since, newest int64) (from, to int64) {
	from, to = since+1, newest
	if p.begun {
		at, _ := strconv.ParseInt(p.key, 10, 64) // sealed by this list
		if p.backward {
			to = min(to, at-1)
		} else {
			from = max(from, at+1)
		}
	}
	if p.backward {
		from = max(from, to-int64(p.size)+1)
	} else {
		to = min(to, from+int64(p.size)-1)
	}
	return from, max(to, from-1)
}

// seal returns the cursor of the element with the key.
func (p *listRange) seal(key string) Cursor {
	return Cursor(p.run.engine.deps.Store.Seal([]byte(key), p.cursorBound()))
}

// newListPage returns a page of elements that a domain found in the direction
// of the page. end is the key at which the domain's search ended, "" if that is
// the last element's.
func newListPage[D, N any](p listRange, found []D, more bool, end string, key func(*D) string, node func(*D) N) *listPage[N] {
	if p.backward {
		slices.Reverse(found)
	}
	page := &listPage[N]{nodes: make([]N, len(found)), backward: p.backward, begun: p.begun, more: more, list: p.list}
	for i := range found {
		page.nodes[i] = node(&found[i])
	}
	page.seal = func(k int) Cursor { return p.seal(key(&found[k])) }
	if end != "" {
		page.end = func() Cursor { return p.seal(end) }
	}
	return page
}

// keyed is an element of a list with its key.
type keyed[D any] struct {
	key   string
	value D
}

// pageOfSlice returns a page of a whole list, which it sorts by key. Its keys
// are unique, so that a page goes on at the right place even if the element of
// its cursor is gone.
func pageOfSlice[D, N any](p listRange, list []D, key func(*D) string, node func(*D) N) *listPage[N] {
	sorted := make([]keyed[D], len(list))
	for i := range list {
		sorted[i] = keyed[D]{key(&list[i]), list[i]}
	}
	slices.SortFunc(sorted, func(a, b keyed[D]) int { return cmp.Compare(a.key, b.key) })
	total := len(sorted)
	from, to := 0, total
	if p.begun {
		at, found := slices.BinarySearchFunc(sorted, p.key, func(e keyed[D], k string) int { return cmp.Compare(e.key, k) })
		switch {
		case p.backward:
			to = at
		case found:
			from = at + 1
		default:
			from = at
		}
	}
	more := to-from > p.size
	if p.backward {
		from = max(from, to-p.size)
	} else {
		to = min(to, from+p.size)
	}
	found := sorted[from:to]
	if p.backward {
		slices.Reverse(found) // newListPage expects the direction of the page
	}
	page := newListPage(p, found, more, "", func(e *keyed[D]) string { return e.key }, func(e *keyed[D]) N { return node(&e.value) })
	page.count = exactly(total)
	return page
}

// openDomainRange is openRange for a list that a domain reads a page at a time: a
// page has at least one element and at most most.
func (r *run) openDomainRange(list string, a knowledge.PageArgs, most int, bound ...any) (p listRange, err error) {
	if p, err = r.openRange(list, a, limit.DefaultPageSize, most, bound...); err == nil && p.size < 1 {
		err = knowledge.InDirection(kg.Errorf(kg.CodeInvalid, "first is at least 1").At("first"), p.backward)
	}
	return p, err
}

// chargeAll charges the elements of a page with their sizes.
func chargeAll[D any](r *run, page []D, size func(*D) int) error {
	for i := range page {
		if err := r.chargeBytes(size(&page[i])); err != nil {
			return err
		}
	}
	return nil
}

// Tokens of the schema.
type (
	// Cursor marks a place in a connection.
	Cursor = scalar.Cursor
	// Position is a place in the log.
	Position = scalar.Position
)

// Stream is an established subscription.
type Stream = knowledge.Stream

// The connections of the domains' lists, and their edges.
type (
	AgentConnection              = listPage[Agent]
	AgentEdge                    = listEdge[Agent]
	APIKeyConnection             = listPage[APIKey]
	APIKeyEdge                   = listEdge[APIKey]
	GraphConnection              = listPage[Graph]
	GraphEdge                    = listEdge[Graph]
	AuditConnection              = listPage[AuditEntry]
	AuditEdge                    = listEdge[AuditEntry]
	ProposalConnection           = listPage[Proposal]
	ProposalEdge                 = listEdge[Proposal]
	QuarantineConnection         = listPage[Quarantine]
	QuarantineEdge               = listEdge[Quarantine]
	TermCountConnection          = listPage[knowledge.TermCount]
	TermCountEdge                = listEdge[knowledge.TermCount]
	GraphCountConnection         = listPage[GraphCount]
	GraphCountEdge               = listEdge[GraphCount]
	ChannelConnection            = listPage[Channel]
	ChannelEdge                  = listEdge[Channel]
	IntentConnection             = listPage[Intent]
	IntentEdge                   = listEdge[Intent]
	LeaseConnection              = listPage[Lease]
	LeaseEdge                    = listEdge[Lease]
	AccessRequestConnection      = listPage[AccessRequest]
	AccessRequestEdge            = listEdge[AccessRequest]
	PortfolioConnection          = listPage[Portfolio]
	PortfolioEdge                = listEdge[Portfolio]
	ScopeConnection              = listPage[Scope]
	ScopeEdge                    = listEdge[Scope]
	ScopeEventConnection         = listPage[ScopeEvent]
	ScopeEventEdge               = listEdge[ScopeEvent]
	ChannelMemberConnection      = listPage[ChannelMember]
	ChannelMemberEdge            = listEdge[ChannelMember]
	ChannelInvitationConnection  = listPage[ChannelInvitation]
	ChannelInvitationEdge        = listEdge[ChannelInvitation]
	ChannelRestrictionConnection = listPage[ChannelRestriction]
	ChannelRestrictionEdge       = listEdge[ChannelRestriction]
	MessageConnection            = listPage[Message]
	MessageEdge                  = listEdge[Message]
	MessageReceiptConnection     = listPage[MessageReceipt]
	MessageReceiptEdge           = listEdge[MessageReceipt]
	TaskConnection               = listPage[Task]
	TaskEdge                     = listEdge[Task]
	TaskMessageConnection        = listPage[TaskMessage]
	TaskMessageEdge              = listEdge[TaskMessage]
	TaskCommitConnection         = listPage[TaskCommit]
	TaskCommitEdge               = listEdge[TaskCommit]
	ContradictionEdge            = listEdge[Contradiction]
	SearchEdge                   = listEdge[SearchHit]
)
