package review

import (
	"slices"
	"strings"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// entry is what is kept in memory of each proposal: who may read it, and until
// when it is open. An entry is never changed, another takes its place.
type entry struct {
	author, actor kg.AgentID
	roles         []string
	expires       time.Time
	open          bool
	about         []place // none where it is not known
}

// readable tells whether the principal may read the proposal.
func (e *entry) readable(p kg.Principal) bool {
	return p.IsAdmin() || p.ID == e.author || p.ID == e.actor || slices.ContainsFunc(e.roles, p.HasRole)
}

// table follows the proposals of the store. Whoever asks about access takes no
// lock.
type table struct {
	entries sync.Map // id → *entry
	lists   lists
}

func (t *table) get(id string) (*entry, bool) {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil, false
	}
	return e.(*entry), true
}

// entryProperties are those that entries are made of, and entryStatements are the
// statements of a commit to look at.
var (
	entryProperties = []kg.Term{propAuthor, propActor, propReviewerRole, propExpires, propAbout, propStatus}
	entryStatements = patternsOf(entryProperties)
)

func patternsOf(properties []kg.Term) (list []kg.Pattern) {
	for _, p := range properties {
		list = append(list, kg.Pattern{Predicate: p})
	}
	return list
}

// take takes properties of proposals in.
func (t *table) take(_ kg.Revision, facts []records.Fact) {
	for _, f := range facts {
		id, ok := strings.CutPrefix(f.Graph.Value(), kg.ProposalGraphPrefix)
		if ok && f.Exists && f.Subject == f.Graph {
			t.note(id, f.Predicate, f.Object)
		}
	}
}

// note takes one property of a proposal in.
func (t *table) note(id string, property, object kg.Term) {
	var e entry
	if old, ok := t.get(id); ok {
		e = *old
	}
	switch property {
	case propAuthor:
		e.author = kg.AgentID(object.Value())
	case propActor:
		e.actor = kg.AgentID(object.Value())
	case propReviewerRole:
		e.roles = append(slices.Clone(e.roles), object.Value())
	case propAbout:
		e.about = append(slices.Clone(e.about), placeOf(object))
	case propExpires:
		e.expires = moment(object)
	case propStatus:
		e.open = object.Value() == string(Pending)
	default:
		return
	}
	t.entries.Store(id, &e)
	t.lists.note(id, &e)
}

// Guard is the access to what belongs to proposals, in front of the access to all
// else.
type Guard struct {
	kg.Front
	table *table
}

// Allowed answers for the graphs of proposals: the author, those who may review
// and administrators read them, nobody writes them but this package.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	id, ok := proposalOf(graph)
	if !ok {
		return g.Access.Allowed(p, graph, right)
	}
	if right != kg.Discover && right != kg.Read {
		return false
	}
	if p.Trusted() {
		return true
	}
	e, ok := g.table.get(id)
	return ok && e.readable(p)
}

// proposalOf is the proposal that a graph belongs to.
func proposalOf(graph kg.Term) (id string, ok bool) {
	if id, ok = strings.CutPrefix(graph.Value(), kg.ProposalGraphPrefix); ok {
		return id, true
	}
	return strings.CutPrefix(graph.Value(), kg.PendingGraphPrefix)
}
