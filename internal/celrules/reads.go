package celrules

import (
	"context"

	"koine/kg"
)

// Query is a query or a subscription before execution.
type Query struct {
	Principal     kg.Principal
	Actor         kg.AgentID
	Call          Call
	Subscription  bool
	Text          string
	OperationName string
	Fields        []string // root fields, without aliases
}

// CheckQuery returns an error with CodeAlignmentViolation if a rule refuses the query.
func (s *Set) CheckQuery(ctx context.Context, q Query) error {
	list := s.rules[OnQuery]
	if q.Subscription {
		list = s.rules[OnSubscribe]
	}
	if len(list) == 0 {
		return nil
	}
	b := s.newBudget(ctx)
	defer b.cancel()
	vars := sharedVars(q.Principal, q.Actor, q.Call)
	vars["query"] = map[string]any{"text": q.Text, "operationName": q.OperationName, "fields": q.Fields}
	for _, r := range list {
		holds, _, err := b.evaluate(r, vars)
		if err != nil {
			return err
		}
		if holds {
			return kg.Errorf(kg.CodeAlignmentViolation, "%s", r.reason())
		}
	}
	return nil
}

// Hides returns a function that reports whether statements with a predicate in a graph
// are hidden from the principal; nil if nothing is. It is for one read and does not
// cache: the caller does. Trusted principals see everything.
func (s *Set) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	list := s.rules[OnRead]
	if len(list) == 0 || p.Trusted() {
		return nil
	}
	caller := callerValue(p, p.ID)
	return func(predicate, graph kg.Term) bool {
		b := s.newBudget(context.Background())
		defer b.cancel()
		vars := map[string]any{"caller": caller, "statement": map[string]any{"predicate": textOf(predicate), "graph": textOf(graph)}}
		for _, r := range list {
			if holds, _, err := b.evaluate(r, vars); holds || err != nil {
				return true
			}
		}
		return false
	}
}
