package channels

import (
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

// ReplaceGrants makes the validated list the grants of a scope within the function of
// Scopes.Change.
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
