package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/agents"
	"koine/internal/presence"
	"koine/kg"
)

// The fields about agents. Package agents holds the rules and checks the
// rights.

func (r *run) agentService() *agents.Service { return agents.NewService(r.engine.deps.Store) }

func readMe(ctx context.Context) (*Principal, error) {
	r := runOf(ctx)
	p := r.request.Principal
	acting := cmp.Or(r.request.Actor, p.ID)
	me := &Principal{
		ID: string(p.ID), ActingFor: agentOf(acting), ActingForID: string(acting), Roles: notNil(p.Roles), ActFor: agentsNamed(p.ActFor), ActForIds: agentTexts(p.ActFor),
		Method: p.Method,
	}
	if p.Method == "" {
		me.Method = kg.MethodLocal // code inside this process
	}
	record, err := r.agentService().Get(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	me.Agent = agentOnRecord(record)
	backed, err := r.engine.deps.Store.SourceStatements(p.ID)
	if err != nil {
		return nil, err
	}
	me.StatementCount = int(backed)
	if most := int(r.engine.deps.Store.MaxSourceStatements()); most > 0 && !p.Trusted() {
		me.MaxStatements = &most
	}
	me.Tier = r.callerTier()
	return me, nil
}

func readAgent(ctx context.Context, id string) (*Agent, error) {
	r := runOf(ctx)
	record, err := r.agentRecord(ctx, kg.CanonicalAgent(id))
	if err != nil {
		return nil, err
	}
	return agentOnRecord(record), nil
}

// agentDirectory returns the directory in which agents register, and the caller.
func (r *run) agentDirectory() (*agents.Directory, agents.Caller, error) {
	by := agents.Caller{Principal: r.request.Principal, Actor: r.request.Actor}
	if r.engine.deps.Agents == nil {
		return nil, by, kg.Errorf(kg.CodeNotFound, "registration is disabled on this server")
	}
	return r.engine.deps.Agents, by, nil
}

// RegisterAgent answers Mutation.registerAgent.
func (*mutationRoot) RegisterAgent(ctx context.Context, input RegisterAgentInput) (*AgentPayload, error) {
	r := runOf(ctx)
	directory, by, err := r.agentDirectory()
	if err != nil {
		return nil, err
	}
	wish, err := agents.ParseCard(input.Card)
	if err != nil {
		return nil, inInput(inCard(err))
	}
	switch id := kg.CanonicalAgent(deref(input.AgentID)); {
	case wish.ID == "":
		wish.ID = cmp.Or(id, by.Acting())
	case id != "" && id != wish.ID:
		return nil, inInput(kg.Errorf(kg.CodeInvalid, "agentId differs from the id in the card").At("agentId"))
	}
	record, err := directory.Register(ctx, by, wish)
	if err != nil {
		return nil, inInput(inCard(err))
	}
	return agentPayload(&record), nil
}

// agentPayload answers a mutation of an agent.
func agentPayload(record *agents.Record) *AgentPayload {
	return &AgentPayload{Agent: agentOnRecord(record)}
}

// agentMembers maps the domain's field names to the members of an input.
var agentMembers = map[string]string{"id": "agentId", "owner": "ownerId"}

// inCard places an error in the member `card`. That of the id stays beside it.
func inCard(err error) error {
	if e := kg.AsError(err); e.Field != "" && e.Field != "id" {
		return e.At("card")
	}
	return withFieldNames(err, agentMembers)
}

// DeregisterAgent answers Mutation.deregisterAgent.
func (*mutationRoot) DeregisterAgent(ctx context.Context, input DeregisterAgentInput) (*AgentPayload, error) {
	r := runOf(ctx)
	directory, by, err := r.agentDirectory()
	if err != nil {
		return nil, err
	}
	id := kg.AgentID(input.AgentID)
	if err := directory.Deregister(ctx, by, id); err != nil {
		return nil, inInput(withFieldNames(err, agentMembers))
	}
	record, err := r.agentService().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return agentPayload(record), nil
}

// updateCard changes the card of a registered agent together with the rest of
// its record.
func updateCard(ctx context.Context, input UpdateAgentInput) (*AgentPayload, error) {
	r := runOf(ctx)
	directory, by, err := r.agentDirectory()
	if err != nil {
		return nil, err
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(input.Card))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil || members == nil {
		return nil, inInput(kg.Errorf(kg.CodeInvalid, "card must be a JSON object").At("card"))
	}
	for name, text := range map[string]*string{"name": input.Name, "owner": input.OwnerID, "status": (*string)(input.Status)} {
		if text != nil {
			members[name] = *text
		}
	}
	change, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	record, err := directory.Update(ctx, by, kg.AgentID(input.AgentID), change)
	if err != nil {
		return nil, inInput(inCard(err))
	}
	return agentPayload(&record), nil
}

// UpdateAgent answers Mutation.updateAgent.
func (*mutationRoot) UpdateAgent(ctx context.Context, input UpdateAgentInput) (*AgentPayload, error) {
	if input.Card != nil {
		return updateCard(ctx, input)
	}
	r := runOf(ctx)
	change := agents.Change{Name: input.Name}
	if input.OwnerID != nil {
		owner := kg.AgentID(*input.OwnerID)
		change.Owner = &owner
	}
	if input.Status != nil {
		status := agents.Status(*input.Status)
		change.Status = &status
	}
	record, err := r.agentService().Update(ctx, r.ownMeta(), kg.AgentID(input.AgentID), change)
	if err != nil {
		return nil, inInput(withFieldNames(err, agentMembers))
	}
	return agentPayload(&record), nil
}

func shownRegistration(g *agents.Registration) *AgentRegistration {
	if g == nil {
		return nil
	}
	out := &AgentRegistration{
		Description: nilIfEmpty(g.Description), Version: nilIfEmpty(g.Version), Role: nilIfEmpty(g.Role), Endpoint: nilIfEmpty(g.Endpoint), Capabilities: notNil(g.Tags()),
		Skills: notNil(g.Skills), Parameters: g.Parameters, Auth: g.Auth, Limits: g.Limits, Metadata: g.Metadata, Other: g.ExtraJSON(), RegisteredAt: g.Time,
	}
	if !g.Changed.IsZero() {
		out.UpdatedAt = &g.Changed
	}
	return out
}

// Heartbeat answers Mutation.heartbeat for the agent that the request acts
// for.
func (*mutationRoot) Heartbeat(ctx context.Context, input HeartbeatInput) (*PresencePayload, error) {
	r := runOf(ctx)
	if r.engine.deps.Presence == nil {
		return nil, kg.Errorf(kg.CodeNotFound, "presence is disabled on this server")
	}
	if err := r.request.Principal.CheckWrite(); err != nil {
		return nil, err
	}
	agent := cmp.Or(r.request.Actor, r.request.Principal.ID)
	if !r.request.Principal.MayActFor(agent) {
		return nil, kg.Errorf(kg.CodeSourceForbidden, "you may not act for %s", agent)
	}
	now, err := r.engine.deps.Presence.Heartbeat(ctx, agent, presence.Status(deref(input.Status)))
	if err != nil {
		return nil, err
	}
	return &PresencePayload{Presence: shownPresence(now)}, nil
}

func shownPresence(p presence.Presence) *Presence {
	out := &Presence{Status: PresenceStatus(p.Status)}
	if !p.Since.IsZero() {
		out.Since = &p.Since
	}
	return out
}

// Agents answers Query.agents.
func (*queryRoot) Agents(ctx context.Context, capability *string, first *int, after *Cursor, last *int, before *Cursor) (*AgentConnection, error) {
	r := runOf(ctx)
	p, err := r.openRange("agents", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultPageSize, math.MaxInt)
	if err != nil {
		return nil, err
	}
	ids, err := r.agentIDs(ctx, capability)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, ids, func(id *kg.AgentID) string { return string(*id) }, func(id *kg.AgentID) Agent { return *agentOf(*id) }), nil
}

// agentIDs lists the agents on record, or the registered ones with a capability.
// koine itself has no record and is left out.
func (r *run) agentIDs(ctx context.Context, capability *string) ([]kg.AgentID, error) {
	if capability == nil {
		return r.agentService().IDs(ctx)
	}
	if *capability == "" {
		return nil, kg.Errorf(kg.CodeInvalid, "capability must not be empty").At("capability")
	}
	directory, _, err := r.agentDirectory()
	if err != nil {
		return nil, err
	}
	ids, err := directory.IDs(ctx, *capability)
	return slices.DeleteFunc(ids, func(id kg.AgentID) bool { return id == kg.System }), err
}
