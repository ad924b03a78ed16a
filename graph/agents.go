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
	if me.Agent, err = r.toAgent(record); err != nil {
		return nil, err
	}
	backed, err := r.engine.deps.Store.Backed(p.ID)
	if err != nil {
		return nil, err
	}
	me.Statements = int(backed)
	if most := int(r.engine.deps.Store.MaxBacked()); most > 0 && !p.Trusted() {
		me.MaxStatements = &most
	}
	me.Tier = r.tier()
	return me, nil
}

func readAgent(ctx context.Context, id string) (*Agent, error) {
	r := runOf(ctx)
	record, err := r.agents().Get(ctx, kg.AgentID(id))
	if err != nil {
		return nil, err
	}
	return r.toAgent(record)
}

func readAgents(ctx context.Context, first *int, after *string) ([]Agent, error) {
	r := runOf(ctx)
	n, err := r.engine.limits.pageSize(first, DefaultPageSize)
	if err != nil {
		return nil, err
	}
	list, _, err := r.agents().List(ctx, kg.CanonicalAgent(deref(after)), n)
	out := make([]Agent, 0, len(list))
	for i := range list {
		agent, failed := r.toAgent(&list[i])
		if failed != nil {
			return nil, failed
		}
		out = append(out, *agent)
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
	return r.toAgent(&record)
}

// toAgent shows a record, nil for none. How much an agent said in all graphs is for
// itself and administrators.
func (r *run) toAgent(record *agents.Record) (*Agent, error) {
	if record == nil {
		return nil, nil
	}
	a := &Agent{ID: string(record.ID), Name: some(record.Name), Owner: some(string(record.Owner)), Roles: notNil(record.Roles), Status: AgentStatus(record.Status), Since: record.Since}
	if tracker := r.engine.deps.Presence; tracker != nil {
		a.Presence = shownPresence(tracker.Of(record.ID))
	}
	if p := r.request.Principal; p.ID != record.ID && !p.IsAdmin() {
		return a, nil
	}
	backed, err := r.engine.deps.Store.Backed(record.ID)
	n := int(backed)
	a.Statements = &n
	return a, err
}
