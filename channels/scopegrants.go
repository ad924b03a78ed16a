package channels

import (
	"context"

	"koine/channels/internal/check"
	"koine/channels/scope"
	"koine/kg"
)

// NewGrants validates grants and gives them ids, for AddGrant and ReplaceGrants. Their time is
// that of the commit. Of those that say the same it keeps the first.
func NewGrants(by kg.AgentID, list []scope.Grant) ([]scope.Grant, error) {
	if n := len(list); n > scope.MaxGrants {
		return nil, check.TooMuch("grants", "scope would have %d grants; the limit is %d", n, scope.MaxGrants)
	}
	out := make([]scope.Grant, 0, len(list))
	seen := map[string]bool{}
	for _, g := range list {
		g, err := g.Normalized()
		if err != nil {
			return nil, err
		}
		if seen[g.Key()] {
			continue
		}
		seen[g.Key()] = true
		if g.ID, err = newID(); err != nil {
			return nil, err
		}
		g.GrantedBy = by
		out = append(out, g)
	}
	return out, nil
}

// Grant gives an agent, or everybody with a role, access to a scope, until it expires. It
// requires a manager of the scope. A grant that equals one in force is that one; any
// other adds to what the agent has, for the greatest level counts.
//
// Errors: CodeInvalid, also for an expiry in the past; CodeLimitExceeded above
// scope.MaxGrants; those of Change.
func (s *Scopes) Grant(ctx context.Context, by Caller, id scope.ID, g scope.Grant) (*scope.Grant, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	list, err := NewGrants(agent, []scope.Grant{g})
	if err != nil {
		return nil, err
	}
	made := list[0]
	_, err = s.Change(ctx, by, id, scope.Admin, "scopes/grant", func(tx *kg.Tx, sc *scope.Scope) error {
		return AddGrant(tx, sc, &made)
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// AddGrant adds a validated grant with an id within the function of Scopes.Change, or sets g
// to the grant in force that says the same.
func AddGrant(tx *kg.Tx, sc *scope.Scope, g *scope.Grant) error {
	if g.IsExpired(tx.Time()) {
		return kg.Errorf(kg.CodeInvalid, "expiresAt is in the past").At("expiresAt")
	}
	for i := range sc.Grants {
		if sc.Grants[i].Key() == g.Key() {
			*g = sc.Grants[i]
			return nil
		}
	}
	g.GrantedAt = tx.Time()
	sc.AddGrant(*g)
	return nil
}

// Revoke removes a grant. It requires a manager of the scope.
//
// Errors: CodeNotFound if there is no such grant, or it has expired; those of Change.
func (s *Scopes) Revoke(ctx context.Context, by Caller, id scope.ID, grant string) (*scope.Grant, error) {
	var gone scope.Grant
	_, err := s.Change(ctx, by, id, scope.Admin, "scopes/revoke", func(tx *kg.Tx, sc *scope.Scope) error {
		g := sc.Grant(grant)
		if g == nil || g.IsExpired(tx.Time()) {
			return kg.Errorf(kg.CodeNotFound, "grant not found").At("grantId")
		}
		gone = *g
		sc.RemoveGrant(grant)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &gone, nil
}

// SetGrants makes the list the grants of a scope, and, unless nil, changes its access. Grants
// that equal one in force are that one and keep their id. It requires a manager of
// the scope.
//
// Errors: those of Grant.
func (s *Scopes) SetGrants(ctx context.Context, by Caller, id scope.ID, access *scope.Access, list []scope.Grant) (*scope.Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	grants, err := NewGrants(agent, list)
	if err != nil {
		return nil, err
	}
	if access != nil {
		a, err := access.Normalized()
		if err != nil {
			return nil, err
		}
		access = &a
	}
	return s.Change(ctx, by, id, scope.Admin, "scopes/setGrants", func(tx *kg.Tx, sc *scope.Scope) error {
		if access != nil {
			sc.Access = *access
		}
		return ReplaceGrants(tx, sc, grants)
	})
}

// ReplaceGrants makes the validated list the grants of a scope within the function of
// Scopes.Change, as SetGrants does.
func ReplaceGrants(tx *kg.Tx, sc *scope.Scope, grants []scope.Grant) error {
	before := sc.Clone()
	sc.Grants = nil
	for _, g := range grants {
		for i := range before.Grants {
			if before.Grants[i].Key() == g.Key() {
				g = before.Grants[i]
			}
		}
		if sc.Grant(g.ID) != nil {
			continue
		}
		if !g.GrantedAt.IsZero() {
			sc.AddGrant(g)
			continue
		}
		if err := AddGrant(tx, sc, &g); err != nil {
			return err
		}
	}
	return nil
}

// Assign gives an agent a role in a scope, "worker" if it names none, and with it access. The
// role scope.Coordinates makes it the coordinator, of which there is one. An agent that has
// the role already keeps its assignment; with another role it gets a new one. It requires a
// manager of the scope.
//
// Errors: CodeNameTaken if another agent is the coordinator; CodeScopeEnded; CodeInvalid;
// CodeLimitExceeded above scope.MaxAssignments; those of Change.
func (s *Scopes) Assign(ctx context.Context, by Caller, id scope.ID, agent kg.AgentID, role string) (*scope.Assignment, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	made, err := NewAssignment(self, agent, role)
	if err != nil {
		return nil, err
	}
	_, err = s.Change(ctx, by, id, scope.Admin, "scopes/assign", func(tx *kg.Tx, sc *scope.Scope) error {
		_, err := AddAssignment(tx, sc, &made)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// NewAssignment validates an assignment and gives it an id, for AddAssignment.
func NewAssignment(by, agent kg.AgentID, role string) (scope.Assignment, error) {
	a, err := scope.Assignment{Agent: agent, Role: role, By: by}.Normalized()
	if err == nil {
		a.ID, err = newID()
	}
	return a, err
}

// AddAssignment adds an assignment within the function of Scopes.Change. If the agent has
// the role already, it sets a to the existing assignment and reports false.
func AddAssignment(tx *kg.Tx, sc *scope.Scope, a *scope.Assignment) (added bool, err error) {
	if sc.Ended() {
		return false, scope.ErrEnded(sc.Status)
	}
	if a.Role == scope.Coordinates && sc.Coordinator != "" && sc.Coordinator != a.Agent {
		return false, kg.Errorf(kg.CodeNameTaken, "scope has a coordinator: %s", sc.Coordinator).At("role")
	}
	if err := tx.CheckAgent(a.Agent); err != nil {
		return false, kg.AsError(err).At("agent")
	}
	if had := sc.Assignment(a.Agent); had != nil {
		if had.Role == a.Role {
			*a = *had
			return false, nil
		}
		removeAssignment(sc, *had)
	}
	a.At = tx.Time()
	sc.AddAssignment(*a)
	if a.Role == scope.Coordinates {
		sc.Coordinator = a.Agent
	}
	return true, nil
}

// Unassign ends the assignment of an agent. It requires a manager of the scope or the agent
// itself.
//
// Errors: CodeNotFound if the agent is not assigned; those of Change.
func (s *Scopes) Unassign(ctx context.Context, by Caller, id scope.ID, agent kg.AgentID) (*scope.Assignment, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	agent, need := kg.CanonicalAgent(string(agent)), scope.Admin
	if agent == self {
		need = scope.Read
	}
	var gone scope.Assignment
	_, err = s.Change(ctx, by, id, need, "scopes/unassign", func(_ *kg.Tx, sc *scope.Scope) error {
		had, err := RemoveAssignment(sc, agent)
		gone = had
		return err
	})
	if err != nil {
		return nil, err
	}
	return &gone, nil
}

// RemoveAssignment removes the assignment of an agent within the function of Scopes.Change.
//
// Errors: CodeNotFound if the agent is not assigned.
func RemoveAssignment(sc *scope.Scope, agent kg.AgentID) (scope.Assignment, error) {
	had := sc.Assignment(agent)
	if had == nil {
		return scope.Assignment{}, kg.Errorf(kg.CodeNotFound, "agent is not assigned").At("agent")
	}
	gone := *had
	removeAssignment(sc, gone)
	return gone, nil
}

// removeAssignment removes an assignment; a coordinator is none afterwards.
func removeAssignment(sc *scope.Scope, a scope.Assignment) {
	sc.RemoveAssignment(a.ID)
	if a.Role == scope.Coordinates && sc.Coordinator == a.Agent {
		sc.Coordinator = ""
	}
}
