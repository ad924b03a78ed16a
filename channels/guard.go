package channels

import (
	"slices"
	"strings"

	"koine/kg"
)

// Guard is the access to the graphs of channels, in front of the access to all
// else. It is part of the store (kg.Options.Access), so that reading and following
// a channel's statements is under the same rule everywhere. The version of the access
// behind it moves on with the members of channels too: answers are kept of their facts,
// which are ordinary graphs.
type Guard struct {
	kg.Front
	table *table
}

// Allowed answers for the graphs of channels: who may read the channel reads them,
// who may publish writes facts, and nobody but this package writes the rest. In a
// channel that is closed no facts begin, and those that are there can be mended.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	if id, part := scopeOfGraph(graph); part != 0 {
		return p.Trusted() || (right == kg.Discover || right == kg.Read) && g.table.scopes.get(id).readBy(p)
	}
	id, part := channelOfGraph(graph)
	if part == 0 {
		return g.Access.Allowed(p, graph, right)
	}
	e := g.table.get(id)
	if e == nil && part == factsPart {
		e = g.table.pendingEntry(id)
	}
	switch right {
	case kg.Discover, kg.Read:
		return p.Trusted() || e.readBy(p) && (part != partitionPart || g.mayReadPartition(p, graph))
	case kg.Write, kg.Create:
		return part == factsPart && (p.Trusted() || e.asPrincipal(p).canPost(p.ID) && (right == kg.Write || e.Status() == Open))
	}
	return p.Trusted()
}

// readBy tells whether the principal may read the channel. In open mode, where
// everybody is an administrator, only members and the public do.
func (e *entry) readBy(p kg.Principal) bool {
	return e.asPrincipal(p).canRead(p.ID) || e != nil && !e.deleted && isOverseer(p)
}

// mayReadPartition tells whether the principal, who reads the channel, reads what in it
// is addressed to some only.
func (g *Guard) mayReadPartition(p kg.Principal, graph kg.Term) bool {
	readers, known := g.table.partitions.Load(graph)
	return known && slices.Contains(readers.([]kg.AgentID), p.ID) || isOverseer(p)
}

// isOverseer tells whether the principal reads what others say among themselves. In open
// mode, where everybody is an administrator, nobody does.
func isOverseer(p kg.Principal) bool { return p.IsAdmin() && p.Method != kg.MethodOpen }

// ReadChanged tells whether what the principal may read has changed in a commit
// behind the revision (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	next := kg.ChangesOf(g.Access)
	changed, upTo = next.ReadChanged(p, after)
	if changed {
		return changed, upTo
	}
	// Both follow the same commits in their order. So whoever is asked second knows
	// of all that the first one did, but perhaps of the last commit.
	changed, ours := g.table.recent.Since(after, func(c *accessChange) bool { return c.affects(p) })
	if changed || ours <= upTo {
		return changed, max(after, upTo-min(upTo, 1))
	}
	changed, _ = next.ReadChanged(p, after)
	return changed, max(after, ours-1)
}

// Forgets keeps from all but administrators what messages said before it was taken
// away (kg.Forgetter): what was retracted, has expired, or is not kept any more.
// In open mode, where everybody is an administrator, from everybody.
func (g *Guard) Forgets(p kg.Principal) func(graph kg.Term) bool {
	if isOverseer(p) {
		return nil
	}
	return holdsMessages
}

// holdsMessages tells whether the graph holds what messages of a channel say.
func holdsMessages(graph kg.Term) bool { return strings.HasPrefix(graph.Value(), journalPrefix) }
