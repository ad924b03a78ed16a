package scope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Level is how much an agent may do in a scope. Each level includes those before it.
type Level string

// Levels of access. The empty level is no access.
const (
	// Read sees the scope, its events and its ByScope channels, and publishes nothing.
	Read Level = "read"
	// Write takes part: publishes, creates channels and tasks, and appends events.
	Write Level = "write"
	// Admin manages the scope, like its creator and its coordinator.
	Admin Level = "admin"
)

// rank orders levels: 0 for no access.
func (l Level) rank() int { return 1 + slices.Index([]Level{Read, Write, Admin}, l) }

// Includes reports whether an agent with this level has the rights of the other one.
func (l Level) Includes(need Level) bool { return l.rank() >= max(1, need.rank()) }

// Greater returns the greater of two levels.
func (l Level) Greater(other Level) Level {
	if other.rank() > l.rank() {
		return other
	}
	return l
}

// Lesser returns the lesser of two levels.
func (l Level) Lesser(other Level) Level {
	if other.rank() < l.rank() {
		return other
	}
	return l
}

// Coordinates is the role of the assignment that makes an agent the coordinator.
const Coordinates = "coordinator"

// Grant gives an agent, or everybody with a role, access to a scope. It does not change: a
// grant with other content is another one.
type Grant struct {
	ID string // a UUID
	// Agent or Role is set. Roles are matched as those of Access.
	Agent     kg.AgentID
	Role      string
	Level     Level
	Reason    string
	GrantedBy kg.AgentID
	GrantedAt time.Time
	// ExpiresAt is the time from which the grant gives no access; the zero time means never.
	ExpiresAt time.Time
}

// IsExpired reports whether the grant gives no access at the time.
func (g *Grant) IsExpired(at time.Time) bool { return !g.ExpiresAt.IsZero() && !at.Before(g.ExpiresAt) }

// Key returns the same text for grants that say the same about the same agent or role.
func (g *Grant) Key() string {
	return fmt.Sprintf("%q %q %s %q %d", g.Agent, g.Role, g.Level, g.Reason, g.ExpiresAt.UnixMilli())
}

// Assignment is an agent that works on a scope. It has access with level Write, and with
// the role Coordinates it is the coordinator. An agent has at most one assignment.
type Assignment struct {
	ID    string // a UUID
	Agent kg.AgentID
	Role  string
	By    kg.AgentID
	At    time.Time
}

const (
	grantPrefix      = "urn:koine:grant:"
	assignmentPrefix = "urn:koine:assignment:"
)

// Entity returns the grant as an entity of the graph.
func (g *Grant) Entity() kg.Term { return kg.IRI(grantPrefix + g.ID) }

// Entity returns the assignment as an entity of the graph.
func (a *Assignment) Entity() kg.Term { return kg.IRI(assignmentPrefix + a.ID) }

// toRecord returns the stored form of a grant.
func (g *Grant) toRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class("ScopeGrant"), "grantRole": systemgraph.Text(g.Role), "grantLevel": systemgraph.Text(string(g.Level)),
		"grantReason": systemgraph.Text(g.Reason), "grantedBy": {kg.IRI(string(g.GrantedBy))}, "grantedAt": {kg.DateTime(g.GrantedAt)},
	}
	if g.Agent != "" {
		r["grantAgent"] = []kg.Term{kg.IRI(string(g.Agent))}
	}
	if !g.ExpiresAt.IsZero() {
		r["grantExpiresAt"] = []kg.Term{kg.DateTime(g.ExpiresAt)}
	}
	return r
}

// toRecord returns the stored form of an assignment.
func (a *Assignment) toRecord() systemgraph.Record {
	return systemgraph.Record{
		systemgraph.Type: systemgraph.Class("ScopeAssignment"), "assignedAgent": {kg.IRI(string(a.Agent))}, "assignedRole": systemgraph.Values(a.Role),
		"assignedBy": {kg.IRI(string(a.By))}, "assignedAt": {kg.DateTime(a.At)},
	}
}

// applyPart adds a statement about a grant or an assignment.
func (s *Scope) applyPart(subject, property, object kg.Term) {
	text := object.Value()
	if id := vocab.IDOf[string](subject, grantPrefix); id != "" {
		at, had := s.grantAt(id)
		if !had {
			s.Grants = slices.Insert(s.Grants, at, Grant{ID: id})
		}
		g := &s.Grants[at]
		switch property {
		case vocab.GrantAgent:
			g.Agent = kg.AgentID(text)
		case vocab.GrantRole:
			g.Role = text
		case vocab.GrantLevel:
			g.Level = Level(text)
		case vocab.GrantReason:
			g.Reason = text
		case vocab.GrantBy:
			g.GrantedBy = kg.AgentID(text)
		case vocab.GrantAt:
			g.GrantedAt, _ = object.DateTimeValue()
		case vocab.GrantExpires:
			g.ExpiresAt, _ = object.DateTimeValue()
		}
	} else if id := vocab.IDOf[string](subject, assignmentPrefix); id != "" {
		at, had := s.assignmentAt(id)
		if !had {
			s.Assignments = slices.Insert(s.Assignments, at, Assignment{ID: id})
		}
		a := &s.Assignments[at]
		switch property {
		case vocab.AssignedAgent:
			a.Agent = kg.AgentID(text)
		case vocab.AssignedRole:
			a.Role = text
		case vocab.AssignedBy:
			a.By = kg.AgentID(text)
		case vocab.AssignedAt:
			a.At, _ = object.DateTimeValue()
		}
	}
}

// removePart removes the grant or assignment that a removed statement was about: neither
// changes, so all of its statements go together.
func (s *Scope) removePart(subject kg.Term) {
	if id := vocab.IDOf[string](subject, grantPrefix); id != "" {
		if at, had := s.grantAt(id); had {
			s.Grants = slices.Delete(s.Grants, at, at+1)
		}
	} else if id := vocab.IDOf[string](subject, assignmentPrefix); id != "" {
		if at, had := s.assignmentAt(id); had {
			s.Assignments = slices.Delete(s.Assignments, at, at+1)
		}
	}
}

// grantAt returns the place of a grant in the list, and whether it is there.
func (s *Scope) grantAt(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Grants, id, func(g Grant, id string) int { return strings.Compare(g.ID, id) })
}

// assignmentAt returns the place of an assignment in the list, and whether it is there.
func (s *Scope) assignmentAt(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Assignments, id, func(a Assignment, id string) int { return strings.Compare(a.ID, id) })
}

// AddGrant adds a grant that has an id.
func (s *Scope) AddGrant(g Grant) {
	at, _ := s.grantAt(g.ID)
	s.Grants = slices.Insert(s.Grants, at, g)
}

// Grant returns the grant with the id, or nil.
func (s *Scope) Grant(id string) *Grant {
	if at, had := s.grantAt(id); had {
		return &s.Grants[at]
	}
	return nil
}

// RemoveGrant removes the grant with the id, if it is there.
func (s *Scope) RemoveGrant(id string) {
	if at, had := s.grantAt(id); had {
		s.Grants = slices.Delete(s.Grants, at, at+1)
	}
}

// AddAssignment adds an assignment that has an id.
func (s *Scope) AddAssignment(a Assignment) {
	at, _ := s.assignmentAt(a.ID)
	s.Assignments = slices.Insert(s.Assignments, at, a)
}

// Assignment returns the assignment of an agent, or nil.
func (s *Scope) Assignment(agent kg.AgentID) *Assignment {
	for i := range s.Assignments {
		if s.Assignments[i].Agent == agent {
			return &s.Assignments[i]
		}
	}
	return nil
}

// RemoveAssignment removes the assignment with the id, if it is there.
func (s *Scope) RemoveAssignment(id string) {
	if at, had := s.assignmentAt(id); had {
		s.Assignments = slices.Delete(s.Assignments, at, at+1)
	}
}

// LevelOf returns the level that the scope itself gives to a principal at a time, without
// what its intent gives. inherits reports that the scope is open to everybody, and everybody then has
// the level Write.
func (s *Scope) LevelOf(p kg.Principal, at time.Time) (level Level, inherits bool) {
	if p.ID != "" && (s.CreatedBy == p.ID || s.Coordinator == p.ID) {
		return Admin, false
	}
	if _, listed := slices.BinarySearch(s.Access.Agents, p.ID); listed || slices.ContainsFunc(s.Access.Roles, p.HasRole) {
		level = Write
	}
	if p.ID != "" && s.Assignment(p.ID) != nil {
		level = Write
	}
	for i := range s.Grants {
		g := &s.Grants[i]
		if (g.Agent != "" && g.Agent == p.ID || g.Role != "" && p.HasRole(g.Role)) && !g.IsExpired(at) {
			level = level.Greater(g.Level)
		}
	}
	return level, s.Access.Everybody
}

// NextExpiry returns the earliest time after another one at which a grant expires, or the
// zero time.
func (s *Scope) NextExpiry(after time.Time) (at time.Time) {
	for i := range s.Grants {
		if e := s.Grants[i].ExpiresAt; e.After(after) && (at.IsZero() || e.Before(at)) {
			at = e
		}
	}
	return at
}

// Normalized validates a grant and returns it in canonical form, without id, grantor and
// time.
func (g Grant) Normalized() (Grant, error) {
	if (g.Agent == "") == (g.Role == "") {
		return g, kg.Errorf(kg.CodeInvalid, "grant must name either an agent or a role").At("agent")
	}
	if g.Agent != "" {
		g.Agent = kg.CanonicalAgent(string(g.Agent))
		if err := g.Agent.Valid(); err != nil {
			return g, kg.AsError(err).At("agent")
		}
	} else if err := checkRole("role", g.Role); err != nil {
		return g, err
	}
	if g.Level.rank() == 0 {
		return g, kg.Errorf(kg.CodeInvalid, "level must be read, write or admin, not %.60q", g.Level).At("level")
	}
	if err := check.Text("reason", g.Reason, MaxReasonRunes); err != nil {
		return g, err
	}
	if !g.ExpiresAt.IsZero() {
		g.ExpiresAt = g.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	g.ID, g.GrantedBy, g.GrantedAt = "", "", time.Time{}
	return g, nil
}

// Normalized validates an assignment and returns it in canonical form. The role "" is
// "worker".
func (a Assignment) Normalized() (Assignment, error) {
	a.Agent = kg.CanonicalAgent(string(a.Agent))
	if a.Agent == "" {
		return a, kg.Errorf(kg.CodeInvalid, "agent is required").At("agent")
	}
	if err := a.Agent.Valid(); err != nil {
		return a, kg.AsError(err).At("agent")
	}
	a.Role = cmp.Or(a.Role, "worker")
	return a, checkRole("role", a.Role)
}

// checkRole validates a role.
func checkRole(field, role string) error {
	if role == "" || !utf8.ValidString(role) || utf8.RuneCountInString(role) > MaxRoleRunes {
		return kg.Errorf(kg.CodeInvalid, "role must be non-empty valid UTF-8 of at most %d characters", MaxRoleRunes).At(field)
	}
	return nil
}

// CheckBounds returns an error if the scope has more grants or assignments than it may.
func (s *Scope) CheckBounds() error {
	if n := len(s.Grants); n > MaxGrants {
		return check.TooMuch("grants", "scope has %d grants; the limit is %d", n, MaxGrants)
	}
	if n := len(s.Assignments); n > MaxAssignments {
		return check.TooMuch("assignments", "scope has %d assignments; the limit is %d", n, MaxAssignments)
	}
	return nil
}

// RemoveCoordination removes assignments with the role Coordinates of agents that are not
// the coordinator.
func (s *Scope) RemoveCoordination() {
	s.Assignments = slices.DeleteFunc(s.Assignments, func(a Assignment) bool { return a.Role == Coordinates && a.Agent != s.Coordinator })
}

// CheckExternalID validates the external id of a scope; "" means none.
func CheckExternalID(id string, parent ID) error {
	if id != "" && parent == "" {
		return kg.Errorf(kg.CodeInvalid, "externalId requires a task").At("externalId")
	}
	return check.Text("externalId", id, MaxExternalIDRunes)
}

// ErrExternalIDTaken is the error for an external id that another task of the intent has.
func ErrExternalIDTaken() *kg.Error {
	return kg.Errorf(kg.CodeNameTaken, "externalId is taken by another task of the intent").At("externalId")
}

// WriteTo writes the changes of the scope since before, which is empty for a new scope.
func (s *Scope) WriteTo(tx *kg.Tx, before *Scope) error {
	graph := s.ID.RecordGraph()
	if err := systemgraph.Write(tx, graph, s.ID.Entity(), s.ToRecord()); err != nil {
		return err
	}
	for i := range before.Grants {
		if g := &before.Grants[i]; s.Grant(g.ID) == nil {
			if err := systemgraph.Remove(tx, kg.Pattern{Subject: g.Entity(), Graph: graph}); err != nil {
				return err
			}
		}
	}
	for i := range s.Grants {
		if g := &s.Grants[i]; before.Grant(g.ID) == nil {
			if err := systemgraph.WriteOver(tx, graph, g.Entity(), nil, g.toRecord()); err != nil {
				return err
			}
		}
	}
	for i := range before.Assignments {
		a := &before.Assignments[i]
		if _, stays := s.assignmentAt(a.ID); !stays {
			if err := systemgraph.Remove(tx, kg.Pattern{Subject: a.Entity(), Graph: graph}); err != nil {
				return err
			}
		}
	}
	for i := range s.Assignments {
		a := &s.Assignments[i]
		if _, had := before.assignmentAt(a.ID); !had {
			if err := systemgraph.WriteOver(tx, graph, a.Entity(), nil, a.toRecord()); err != nil {
				return err
			}
		}
	}
	return nil
}
