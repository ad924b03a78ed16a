package channels_test

import (
	"context"

	"koine/channels"
	"koine/channels/scope"
	"koine/kg"
)

// managedScopes changes grants and assignments by the functions that packages call within
// channels.Scopes.Change, without the events that they append.
type managedScopes struct{ *channels.Scopes }

func (s *server) managed() managedScopes { return managedScopes{s.Scopes()} }

func (s managedScopes) Grant(ctx context.Context, by channels.Caller, id scope.ID, g scope.Grant) (*scope.Grant, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	list, err := channels.NewGrants(agent, []scope.Grant{g})
	if err != nil {
		return nil, err
	}
	made := list[0]
	_, err = s.Change(ctx, by, id, scope.Admin, "scopes/grant", func(tx *kg.Tx, sc *scope.Scope) error {
		return channels.AddGrant(tx, sc, &made)
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

func (s managedScopes) SetGrants(ctx context.Context, by channels.Caller, id scope.ID, access *scope.Access, list []scope.Grant) (*scope.Scope, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	grants, err := channels.NewGrants(agent, list)
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
		return channels.ReplaceGrants(tx, sc, grants)
	})
}

func (s managedScopes) Assign(ctx context.Context, by channels.Caller, id scope.ID, agent kg.AgentID, role string) (*scope.Assignment, error) {
	self, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	made, err := channels.NewAssignment(self, agent, role)
	if err != nil {
		return nil, err
	}
	_, err = s.Change(ctx, by, id, scope.Admin, "scopes/assign", func(tx *kg.Tx, sc *scope.Scope) error {
		_, err := channels.AddAssignment(tx, sc, &made)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

func (s managedScopes) Unassign(ctx context.Context, by channels.Caller, id scope.ID, agent kg.AgentID) (*scope.Assignment, error) {
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
		had, err := channels.RemoveAssignment(sc, agent)
		gone = had
		return err
	})
	if err != nil {
		return nil, err
	}
	return &gone, nil
}
