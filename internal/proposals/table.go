package proposals

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// entry is the part of a proposal that is kept in memory: its readers and its expiry.
// Entries are immutable and replaced on change.
type entry struct {
	author, actor kg.AgentID
	roles         []string
	expires       time.Time
	open          bool
	channel       string // of a held message
	recipient     string
	about         []patchPlace // empty if unknown
}

// readableBy reports whether the principal may read the proposal. That of a message needs
// the right to read the message, too.
func (t *table) readableBy(e *entry, p kg.Principal) bool {
	if p.ID == e.author || p.ID == e.actor {
		return true
	}
	if !p.IsAdmin() && !slices.ContainsFunc(e.roles, p.HasRole) {
		return false
	}
	return e.channel == "" || t.messages != nil && t.messages.MayReview(p, cmp.Or(e.actor, e.author), e.channel, e.recipient)
}

// table follows the proposals of the store. Access checks take no lock.
type table struct {
	entries  sync.Map // id → *entry
	lists    indexes
	messages Messages // nil if none are held
}

func (t *table) get(id string) (*entry, bool) {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil, false
	}
	return e.(*entry), true
}

// entryProperties are the properties in an entry, and entryStatements the patterns for
// commits.
var (
	entryProperties = []kg.Term{propAuthor, propActor, propReviewerRole, propExpires, propAbout, propChannel, propRecipient, propStatus}
	entryStatements = patternsOf(entryProperties)
)

func patternsOf(properties []kg.Term) (list []kg.Pattern) {
	for _, p := range properties {
		list = append(list, kg.Pattern{Predicate: p})
	}
	return list
}

// applyFacts applies facts about proposals.
func (t *table) applyFacts(_ kg.Revision, facts []systemgraph.Fact) {
	for _, f := range facts {
		id, ok := strings.CutPrefix(f.Graph.Value(), kg.ProposalGraphPrefix)
		if ok && f.Exists && f.Subject == f.Graph {
			t.setProperty(id, f.Predicate, f.Object)
		}
	}
}

// setProperty applies one property of a proposal.
func (t *table) setProperty(id string, property, object kg.Term) {
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
	case propChannel:
		e.channel = object.Value()
	case propRecipient:
		e.recipient = object.Value()
	case propExpires:
		e.expires = timeOf(object)
	case propStatus:
		e.open = object.Value() == string(Pending)
	default:
		return
	}
	t.entries.Store(id, &e)
	t.lists.updateEntry(id, &e)
}

// Guard controls access to the graphs of proposals and passes everything else on.
type Guard struct {
	kg.Front
	table *table
}

// Allowed decides for the graphs of proposals: the author, the reviewers and
// administrators read them, and only this package writes them.
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
	return ok && g.table.readableBy(e, p)
}

func proposalOf(graph kg.Term) (id string, ok bool) {
	if id, ok = strings.CutPrefix(graph.Value(), kg.ProposalGraphPrefix); ok {
		return id, true
	}
	return strings.CutPrefix(graph.Value(), kg.PendingGraphPrefix)
}
