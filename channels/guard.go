package channels

import (
	"slices"
	"strings"
	"sync/atomic"

	"koine/kg"
)

// Guard is the access to the graphs of channels, in front of the access to all
// else. It is part of the store (kg.Options.Access), so that reading and following
// a channel's statements is under the same rule everywhere.
type Guard struct {
	table *table
	next  kg.Access
}

// Allowed answers for the graphs of channels: who may read the channel reads them,
// who may publish writes facts, and nobody but this package writes the rest.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	if id, part := scopeOf(graph); part != 0 {
		return p.Trusted() || (right == kg.Discover || right == kg.Read) && g.table.scopes.get(id).readBy(p)
	}
	id, part := channelOf(graph)
	if part == 0 {
		return g.next.Allowed(p, graph, right)
	}
	e := g.table.get(id)
	if e == nil && part == factsPart {
		e = g.table.comes(id)
	}
	switch right {
	case kg.Discover, kg.Read:
		return p.Trusted() || e.readBy(p) && (part != lanePart || g.mayReadLane(p, graph))
	case kg.Write, kg.Create:
		return part == factsPart && (p.Trusted() || e.as(p).posts(p.ID) && e.Status() == Open)
	}
	return p.Trusted()
}

// readBy tells whether the principal may read the channel. In open mode, where
// everybody is an administrator, only members and the public do.
func (e *entry) readBy(p kg.Principal) bool {
	return e.as(p).reads(p.ID) || e != nil && !e.deleted && p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

// mayReadLane tells whether the principal, who reads the channel, reads what in it
// is addressed to some only.
func (g *Guard) mayReadLane(p kg.Principal, graph kg.Term) bool {
	readers, known := g.table.lanes.Load(graph)
	return known && slices.Contains(readers.([]kg.AgentID), p.ID) || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

const openMethod = "open"

// ReadChanged tells whether what the principal may read has changed in a commit
// behind the revision (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	next := kg.ChangesOf(g.next)
	changed, upTo = next.ReadChanged(p, after)
	if changed {
		return changed, upTo
	}
	// Both follow the same commits in their order. So whoever is asked second knows
	// of all that the first one did, but perhaps of the last commit.
	changed, ours := g.table.lately.Since(after, func(c *change) bool { return c.differs(p) })
	if changed || ours <= upTo {
		return changed, max(after, upTo-min(upTo, 1))
	}
	changed, _ = next.ReadChanged(p, after)
	return changed, max(after, ours-1)
}

// Version is that of the access behind it, which moves on with the members of
// channels too: answers are kept of their facts, which are ordinary graphs.
func (g *Guard) Version() *atomic.Uint64 { return kg.VersionOf(g.next) }

// Forgets keeps from all but administrators what messages said before it was taken
// away (kg.Forgetter): what was retracted, has expired, or is not kept any more.
// In open mode, where everybody is an administrator, from everybody.
func (g *Guard) Forgets(p kg.Principal) func(graph kg.Term) bool {
	if p.Trusted() || p.HasRole(kg.RoleAdmin) && p.Method != openMethod {
		return nil
	}
	return holdsMessages
}

// holdsMessages tells whether the graph holds what messages of a channel say.
func holdsMessages(graph kg.Term) bool { return strings.HasPrefix(graph.Value(), journalPrefix) }

// Unwrap is the access behind it.
func (g *Guard) Unwrap() kg.Access { return g.next }

// Hides passes on what the access behind it hides.
func (g *Guard) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if h, ok := g.next.(kg.Hider); ok {
		return h.Hides(p)
	}
	return nil
}
