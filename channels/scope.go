package channels

import (
	"slices"
	"sync/atomic"
	"time"

	"koine/kg"
)

// ScopeStatus says how far the work that a scope is about has come.
type ScopeStatus string

// The states. The last two are ends.
const (
	Active    ScopeStatus = "active"
	Completed ScopeStatus = "completed"
	Abandoned ScopeStatus = "abandoned"
)

// ScopeAccess says who may see a scope and take part in it, beside its creator and
// its coordinator. Of a task, only who has access to its parent counts.
type ScopeAccess struct {
	// Everybody is everybody who is let in by the server.
	Everybody bool
	Agents    []kg.AgentID
	// Roles are those that the credential of who asks brings.
	Roles []string
}

// Scope is what channels may belong to: an intent, or a task within one. Not to be
// changed by who gets it.
type Scope struct {
	ID ScopeID
	// Parent is the intent that a task belongs to, "" for an intent.
	Parent ScopeID
	Title  string
	Status ScopeStatus
	Access ScopeAccess
	// Coordinator manages the scope, as its creator does; "" is nobody.
	Coordinator kg.AgentID
	CreatedAt   time.Time
	CreatedBy   kg.AgentID
	// EndedAt and EndReason are of one that has ended.
	EndedAt   time.Time
	EndReason string
	// Version is 1 at first and goes up with each change.
	Version int64
	// Replayed tells that CreateScope found the scope under its idempotency key.
	Replayed bool
}

// Ended tells whether the work is over.
func (s *Scope) Ended() bool { return s.Status != Active }

// applyStatement takes one statement of the scope's record in.
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

// removeStatement takes one statement of the scope's record out.
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

// clone shares nothing with the scope.
func (s *Scope) clone() *Scope {
	c := *s
	c.Access.Agents, c.Access.Roles = slices.Clone(s.Access.Agents), slices.Clone(s.Access.Roles)
	return &c
}

// scope is what is kept in memory of one. It is never changed, another takes its
// place in its cell.
type scope struct {
	Scope
	parent *scopeCell // nil for an intent
}

// scopeCell is where the scope stands as it is now. Channels refer to it.
type scopeCell struct{ now atomic.Pointer[scope] }

// get is the scope as it is now, nil for no cell.
func (c *scopeCell) get() *scope {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// admitsPrincipal tells whether the principal may see the scope and take part in it.
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

// isRunBy tells whether the agent is the scope's creator or coordinator.
func (s *scope) isRunBy(agent kg.AgentID) bool {
	return s != nil && agent != "" && (s.CreatedBy == agent || s.Coordinator == agent)
}

// managedBy tells whether the agent manages the scope: who runs it, or the intent
// that it belongs to.
func (s *scope) managedBy(agent kg.AgentID) bool {
	return s != nil && (s.isRunBy(agent) || s.parent.get().isRunBy(agent))
}

// readBy tells whether the principal may read the scope's record. In open mode,
// where everybody is an administrator, only those who have access do.
func (s *scope) readBy(p kg.Principal) bool {
	return s.admitsPrincipal(p) || s != nil && isOverseer(p)
}
