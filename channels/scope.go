package channels

import (
	"slices"
	"sync/atomic"

	"koine/channels/scope"
	"koine/kg"
)

// scopeEntry is the in-memory entry of a scope. It is immutable; its cell points to the
// current one.
type scopeEntry struct {
	scope.Scope
	parent *scopeCell // nil for an intent
}

// scopeCell points to the current entry of a scope. Channels refer to the cell.
type scopeCell struct{ now atomic.Pointer[scopeEntry] }

// get returns the current entry, or nil for a nil cell.
func (c *scopeCell) get() *scopeEntry {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// admitsPrincipal reports whether the principal has access to the scope.
func (s *scopeEntry) admitsPrincipal(p kg.Principal) bool {
	if s == nil {
		return false
	}
	if s.parent != nil {
		up := s.parent.get()
		if up.isRunBy(p.ID) {
			return true
		}
		if !up.admitsPrincipal(p) {
			return false
		}
	}
	if s.isRunBy(p.ID) || s.Access.Everybody {
		return true
	}
	if _, listed := slices.BinarySearch(s.Access.Agents, p.ID); listed {
		return true
	}
	return slices.ContainsFunc(s.Access.Roles, p.HasRole)
}

// isRunBy reports whether the agent is the scope's creator or coordinator.
func (s *scopeEntry) isRunBy(agent kg.AgentID) bool {
	return s != nil && agent != "" && (s.CreatedBy == agent || s.Coordinator == agent)
}

// managedBy reports whether the agent runs the scope or its parent.
func (s *scopeEntry) managedBy(agent kg.AgentID) bool {
	return s != nil && (s.isRunBy(agent) || s.parent.get().isRunBy(agent))
}

// readBy reports whether the principal may read the scope's record. In open mode, in
// which every principal is an administrator, administrators have no extra access.
func (s *scopeEntry) readBy(p kg.Principal) bool {
	return s.admitsPrincipal(p) || s != nil && isOverseer(p)
}
