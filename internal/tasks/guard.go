package tasks

import (
	"sync/atomic"

	"koine/kg"
)

// Guard is the access to the graphs of tasks, in front of the access to all else.
// It is part of the store (kg.Options.Access), so that reading and following a
// task's statements is under the same rule everywhere.
type Guard struct{ next kg.Access }

// NewGuard puts the access to tasks in front of another.
func NewGuard(next kg.Access) *Guard { return &Guard{next} }

// Allowed answers for the graphs of tasks: their creator and their handler read
// them, and nobody but this package writes them.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	creator, handler, ok := pairOf(graph)
	if !ok {
		return g.next.Allowed(p, graph, right)
	}
	if right != kg.Discover && right != kg.Read {
		return p.Trusted()
	}
	return takesPart(p, creator, handler)
}

// takesPart tells whether the principal may read the tasks of the two. In open mode,
// where everybody is an administrator, only they do.
func takesPart(p kg.Principal, creator, handler kg.AgentID) bool {
	return p.Trusted() || p.ID == creator || p.ID == handler || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

const openMethod = "open"

// ReadChanged passes on: who takes part in a task never changes (kg.AccessChanges).
func (g *Guard) ReadChanged(p kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	return kg.ChangesOf(g.next).ReadChanged(p, after)
}

// Version is that of the access behind it.
func (g *Guard) Version() *atomic.Uint64 { return kg.VersionOf(g.next) }

// Unwrap is the access behind it.
func (g *Guard) Unwrap() kg.Access { return g.next }

// Hides passes on what the access behind it hides.
func (g *Guard) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if h, ok := g.next.(kg.Hider); ok {
		return h.Hides(p)
	}
	return nil
}
