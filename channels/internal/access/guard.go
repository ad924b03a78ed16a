package access

import (
	"slices"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// Guard is the access control of channel graphs, in front of the access control of all
// other graphs. It is part of the store (kg.Governor.Access), so the same rules apply to
// reading, watching and querying. It increments the version of the access behind it
// when membership changes, because the store caches decisions about the facts graphs,
// which are ordinary graphs.
type Guard struct {
	kg.Front
	table *Table
}

// Guard returns the access control in front of next.
func (t *Table) Guard(next kg.Access) *Guard {
	t.version = kg.VersionOf(next)
	return &Guard{Front: kg.Front{Access: next}, table: t}
}

// Allowed decides access to channel graphs. Read access to the channel allows reading
// them, and publish access allows writing facts. Only this package writes the other
// graphs. The facts graph of a closed channel cannot be created any more, but existing
// facts can be corrected.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	if id, _ := scope.OfGraph(graph); id != "" {
		return p.Trusted() || (right == kg.Discover || right == kg.Read) && g.table.scopes.get(id).readBy(p)
	}
	id, part := channel.OfGraph(graph)
	if part == 0 {
		return g.Access.Allowed(p, graph, right)
	}
	e := g.table.Get(id)
	if e == nil && part == channel.FactsPart {
		e = g.table.PendingEntry(id)
	}
	if part == channel.CopyPart {
		return p.Trusted() || (right == kg.Discover || right == kg.Read) && (g.table.MayReadCopy(p, graph) || e != nil && readsAll(p))
	}
	switch right {
	case kg.Discover, kg.Read:
		if part == channel.VerdictPart {
			return p.Trusted()
		}
		return p.Trusted() || e.readBy(p) && (part != channel.PartitionPart || g.mayReadPartition(p, graph))
	case kg.Write, kg.Create:
		return part == channel.FactsPart && (p.Trusted() || e.AsPrincipal(p).CanPost(p.ID) && (right == kg.Write || e.Status() == channel.Open))
	}
	return p.Trusted()
}

// readBy reports whether the principal may read the channel. In open mode, in which
// every principal is an administrator, administrators have no extra access.
func (e *Entry) readBy(p kg.Principal) bool {
	return IsReadable(e.AsPrincipal(p), p.ID) || e != nil && !e.Deleted && readsAll(p)
}

// MayReview reports whether a principal other than the author may see a message that is
// held before it is published in a channel. recipient is its address, "" for everyone.
func (t *Table) MayReview(p kg.Principal, author kg.AgentID, id channel.ID, recipient string) bool {
	e := t.Get(id)
	switch {
	case e == nil: // the first message of a direct channel
		return readsAll(p) || channel.DirectID(author, p.ID) == id
	case e.Deleted: // somebody must be able to end the review
		return p.IsAdmin()
	case recipient != "" && recipient != string(p.ID):
		return readsAll(p)
	}
	return e.AsPrincipal(p).CanRead(p.ID) || readsAll(p)
}

// mayReadPartition reports whether the principal, which can read the channel, can read
// the content in this partition.
func (g *Guard) mayReadPartition(p kg.Principal, graph kg.Term) bool {
	id, _ := channel.OfGraph(graph)
	return g.table.isPartitionReader(p.ID, graph) || readsAll(p) || g.table.Oversees(p, id)
}

// isPartitionReader reports whether the agent is a reader of the partition.
func (t *Table) isPartitionReader(agent kg.AgentID, partition kg.Term) bool {
	readers, known := t.partitions.Load(partition)
	return known && slices.Contains(readers.([]kg.AgentID), agent)
}

// MayReadCopy reports whether the principal takes part in the channel that an audit graph has copies of.
// It can read the channel, or could when it was deleted and still has access to its scope;
// and it is an author or recipient if the messages are addressed. That administrators read
// the graph does not count.
func (t *Table) MayReadCopy(p kg.Principal, copies kg.Term) bool {
	id, part := channel.OfGraph(copies)
	e := t.Get(id).AsPrincipal(p)
	if part != channel.CopyPart || e == nil || !e.CanRead(p.ID) && !e.couldRead(p.ID) {
		return false
	}
	partition := channel.CopiedPartition(copies)
	return partition.IsZero() || t.isPartitionReader(p.ID, partition)
}

// couldRead reports whether the agent could read the channel when it was deleted, and still
// has access to its scope.
func (e *Entry) couldRead(agent kg.AgentID) bool {
	if !e.Deleted || e.scope == nil || !e.AdmitsAgent(agent) || e.table.ServerRestrictions().AppliesTo(agent, false, e.decisionTime()) {
		return false
	}
	if _, listed := slices.BinarySearch(e.FormerReaders, agent); listed {
		return true
	}
	return e.GrantsReadToAll() && !channel.Restrictions(e.Restrictions).AppliesTo(agent, false, e.DeletedAt)
}

// readsAll reports whether the principal may read the statements of all conversations.
// Administrators may, except in open mode, in which every principal is an
// administrator.
func readsAll(p kg.Principal) bool { return p.IsAdmin() && p.Method != kg.MethodOpen }

// MembersWhoRead lists the members that may read the channel if they have access to its scope.
func MembersWhoRead(e *Entry) (list []kg.AgentID) {
	for _, m := range e.Members {
		if e.effective.Read.Includes(m.Role, true) && !e.isRestricted(m.Agent, false) {
			list = append(list, m.Agent)
		}
	}
	return list
}

// ReadChanged reports whether a commit after the revision has changed what the
// principal may read (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	next := kg.ChangesOf(g.Access)
	changed, upTo = next.ReadChanged(p, after)
	if changed {
		return changed, upTo
	}
	// Both follow the same commits in order, so the one asked second knows all that the
	// first one knew, except possibly the last commit.
	changed, ours := g.table.recent.Since(after, func(c *accessChange) bool { return c.affects(p) })
	if changed || ours <= upTo {
		return changed, max(after, upTo-min(upTo, 1))
	}
	changed, _ = next.ReadChanged(p, after)
	return changed, max(after, ours-1)
}

// Forgets hides removed content of messages from all but administrators (kg.Forgetter):
// content that was retracted, has expired, or was evicted. In open mode it is hidden
// from everyone.
func (g *Guard) Forgets(p kg.Principal) func(graph kg.Term) bool {
	if readsAll(p) {
		return nil
	}
	return channel.HoldsMessages
}

// accessChange is a change of a channel or scope, or of the server-wide restrictions of
// an agent, that may affect access.
type accessChange struct {
	agent         kg.AgentID // set for a server-wide restriction
	before, after accessView
}

// accessView is an object with read access.
type accessView interface {
	readBy(kg.Principal) bool
}

// affects reports whether the change affects the read rights of the principal.
func (c *accessChange) affects(p kg.Principal) bool {
	if p.Trusted() { // reads everything
		return false
	}
	if c.agent != "" {
		return c.agent == p.ID
	}
	return c.before.readBy(p) != c.after.readBy(p)
}
