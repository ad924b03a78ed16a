package tasks

import "koine/kg"

// Guard controls access to the graphs of tasks and passes everything else on. It is
// part of the store (kg.Options.Access), so reads and subscriptions of a task's
// statements follow one rule everywhere.
type Guard struct{ kg.Front }

// NewGuard returns a Guard in front of next.
func NewGuard(next kg.Access) *Guard { return &Guard{kg.Front{Access: next}} }

// Allowed decides for the graphs of tasks: the creator and the handler read them, and
// only this package writes them.
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

// takesPart reports whether the principal may read the tasks of the two agents. In open
// mode, where every caller is an administrator, only the two may.
func takesPart(p kg.Principal, creator, handler kg.AgentID) bool {
	return p.Trusted() || p.ID == creator || p.ID == handler || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

const openMethod = "open"
