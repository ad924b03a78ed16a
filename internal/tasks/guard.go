package tasks

import "koine/kg"

// Guard is the access to the graphs of tasks, in front of the access to all else.
// It is part of the store (kg.Options.Access), so that reading and following a
// task's statements is under the same rule everywhere.
type Guard struct{ kg.Front }

// NewGuard puts the access to tasks in front of another.
func NewGuard(next kg.Access) *Guard { return &Guard{kg.Front{Access: next}} }

// Allowed answers for the graphs of tasks: their creator and their handler read
// them, and nobody but this package writes them.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	creator, handler, ok := pairOf(graph)
	if !ok {
		return g.Access.Allowed(p, graph, right)
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
