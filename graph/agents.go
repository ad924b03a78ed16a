package graph

import (
	"context"

	"koine/internal/agents"
	"koine/kg"
)

// The fields about agents. What they do, and who may, is package agents'.

func (r *run) agents() *agents.Service { return agents.NewService(r.engine.deps.Store) }

func readMe(ctx context.Context) (*Me, error) {
	r := runOf(ctx)
	p := r.request.Principal
	me := &Me{ID: string(p.ID), ActingFor: string(r.request.Actor), Roles: notNil(p.Roles), ActFor: agentTexts(p.ActFor), Method: p.Method}
	if me.ActingFor == "" {
		me.ActingFor = me.ID
	}
	if p.Method == "" {
		me.Method = kg.MethodLocal // code inside this process
	}
	record, err := r.agents().Get(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	me.Agent = toAgent(record)
	return me, nil
}

func readAgent(ctx context.Context, id string) (*Agent, error) {
	record, err := runOf(ctx).agents().Get(ctx, kg.AgentID(id))
	return toAgent(record), err
}

func readAgents(ctx context.Context, first *int, after *string) ([]Agent, error) {
	r := runOf(ctx)
	n, err := r.engine.limits.pageSize(first, DefaultPageSize)
	if err != nil {
		return nil, err
	}
	list, _, err := r.agents().List(ctx, kg.CanonicalAgent(deref(after)), n)
	out := make([]Agent, len(list))
	for i := range list {
		out[i] = *toAgent(&list[i])
	}
	return out, err
}

func updateAgent(ctx context.Context, input UpdateAgentInput) (*Agent, error) {
	r := runOf(ctx)
	change := agents.Change{Name: input.Name}
	if input.Owner != nil {
		owner := kg.AgentID(*input.Owner)
		change.Owner = &owner
	}
	if input.Status != nil {
		status := agents.Status(*input.Status)
		change.Status = &status
	}
	record, err := r.agents().Update(ctx, r.ownMeta(), kg.AgentID(input.ID), change)
	if err != nil {
		return nil, inInput(err)
	}
	return toAgent(&record), nil
}

func toAgent(r *agents.Record) *Agent {
	if r == nil {
		return nil
	}
	return &Agent{ID: string(r.ID), Name: some(r.Name), Owner: some(string(r.Owner)), Roles: notNil(r.Roles), Status: AgentStatus(r.Status), Since: r.Since}
}
