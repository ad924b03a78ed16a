package channels

import (
	"slices"
	"sync/atomic"
	"time"

	"koine/kg"
)

// ScopeStatus is the status of a scope.
type ScopeStatus string

// Scope states. Completed and Abandoned are final.
const (
	Active    ScopeStatus = "active"
	Completed ScopeStatus = "completed"
	Abandoned ScopeStatus = "abandoned"
)

// ScopeAccess lists who can see a scope and take part in it, in addition to its creator
// and coordinator. Access to a task also requires access to its parent.
type ScopeAccess struct {
	// Everybody grants access to every authenticated principal.
	Everybody bool
	Agents    []kg.AgentID
	// Roles are matched against the roles of the caller's credential.
	Roles []string
}

// Scope is a group of channels: an intent, or a task within one. Callers must not
// modify it.
type Scope struct {
	ID ScopeID
	// Parent is the intent of a task, or "" for an intent.
	Parent ScopeID
	Title  string
	Status ScopeStatus
	Access ScopeAccess
	// Coordinator manages the scope, like its creator; "" for none.
	Coordinator kg.AgentID
	CreatedAt   time.Time
	CreatedBy   kg.AgentID
	// EndedAt and EndReason are set once the scope has ended.
	EndedAt   time.Time
	EndReason string
	// Version starts at 1 and increases with each change.
	Version int64
	// Replayed means that CreateScope found the scope under its idempotency key.
	Replayed bool
}

// Ended reports whether the scope has ended.
func (s *Scope) Ended() bool { return s.Status != Active }

// applyStatement adds one statement of the record to the scope.
func (s *Scope) applyStatement(property, object kg.Term) {
	text := object.Value()
	switch property {
	case propScopeTitle:
		s.Title = text
	case propScopeStatus:
		s.Status = ScopeStatus(text)
	case propScopeParent:
		s.Parent = scopeIDIn(object)
	case propScopeCoordinator:
		s.Coordinator = kg.AgentID(text)
	case propScopeEverybody:
		s.Access.Everybody = true
	case propScopeAgent:
		at, had := slices.BinarySearch(s.Access.Agents, kg.AgentID(text))
		if !had {
			s.Access.Agents = slices.Insert(s.Access.Agents, at, kg.AgentID(text))
		}
	case propScopeRole:
		at, had := slices.BinarySearch(s.Access.Roles, text)
		if !had {
			s.Access.Roles = slices.Insert(s.Access.Roles, at, text)
		}
	case propScopeCreated:
		s.CreatedAt, _ = object.DateTimeValue()
	case propScopeCreator:
		s.CreatedBy = kg.AgentID(text)
	case propScopeEnded:
		s.EndedAt, _ = object.DateTimeValue()
	case propScopeReason:
		s.EndReason = text
	case propScopeVersion:
		s.Version = integerValue(object)
	}
}

// removeStatement removes one statement of the record from the scope.
func (s *Scope) removeStatement(property, object kg.Term) {
	text := object.Value()
	switch property {
	case propScopeTitle:
		if s.Title == text {
			s.Title = ""
		}
	case propScopeCoordinator:
		if s.Coordinator == kg.AgentID(text) {
			s.Coordinator = ""
		}
	case propScopeEverybody:
		s.Access.Everybody = false
	case propScopeAgent:
		s.Access.Agents = slices.DeleteFunc(s.Access.Agents, func(a kg.AgentID) bool { return a == kg.AgentID(text) })
	case propScopeRole:
		s.Access.Roles = slices.DeleteFunc(s.Access.Roles, func(r string) bool { return r == text })
	}
}

// clone returns a deep copy.
func (s *Scope) clone() *Scope {
	c := *s
	c.Access.Agents, c.Access.Roles = slices.Clone(s.Access.Agents), slices.Clone(s.Access.Roles)
	return &c
}

// scope is the in-memory entry of a scope. It is immutable; its cell points to the
// current one.
type scope struct {
	Scope
	parent *scopeCell // nil for an intent
}

// scopeCell points to the current entry of a scope. Channels refer to the cell.
type scopeCell struct{ now atomic.Pointer[scope] }

// get returns the current entry, or nil for a nil cell.
func (c *scopeCell) get() *scope {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// admitsPrincipal reports whether the principal has access to the scope.
func (s *scope) admitsPrincipal(p kg.Principal) bool {
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
func (s *scope) isRunBy(agent kg.AgentID) bool {
	return s != nil && agent != "" && (s.CreatedBy == agent || s.Coordinator == agent)
}

// managedBy reports whether the agent runs the scope or its parent.
func (s *scope) managedBy(agent kg.AgentID) bool {
	return s != nil && (s.isRunBy(agent) || s.parent.get().isRunBy(agent))
}

// readBy reports whether the principal may read the scope's record. In open mode, in
// which every principal is an administrator, administrators have no extra access.
func (s *scope) readBy(p kg.Principal) bool {
	return s.admitsPrincipal(p) || s != nil && isOverseer(p)
}
