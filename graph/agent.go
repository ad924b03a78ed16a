package graph

import (
	"context"
	"slices"
	"time"

	"koine/graph/executor"
	"koine/internal/agents"
	"koine/kg"
)

// Agent is an agent that something names. Its record, which an agent need not
// have, is read when a field shows it, and once for each agent and operation.
type Agent struct {
	id     kg.AgentID
	record *agents.Record // if it came with the agent
}

func agentOf(id kg.AgentID) *Agent { return &Agent{id: id} }

// agentIfAny returns nil for "".
func agentIfAny(id kg.AgentID) *Agent {
	if id == "" {
		return nil
	}
	return agentOf(id)
}

func agentsOf(ids []kg.AgentID) []Agent {
	list := make([]Agent, len(ids))
	for i, id := range ids {
		list[i].id = id
	}
	return list
}

// agentsNamed leaves out "*", which stands for all agents.
func agentsNamed(ids []kg.AgentID) []Agent {
	return agentsOf(slices.DeleteFunc(slices.Clone(ids), func(id kg.AgentID) bool { return id == "*" }))
}

// agentOnRecord returns the agent of a record, nil for nil.
func agentOnRecord(record *agents.Record) *Agent {
	if record == nil {
		return nil
	}
	return &Agent{record.ID, record}
}

// agentRecord reads the record of an agent, nil if there is none.
func (r *run) agentRecord(ctx context.Context, id kg.AgentID) (*agents.Record, error) {
	if r.mutates { // its later fields show what it changed
		if head := r.engine.deps.Store.Head(); head != r.agentsReadAt {
			r.agentRecords, r.agentsReadAt = nil, head
		}
	}
	record, known := r.agentRecords[id]
	if known {
		return record, nil
	}
	record, err := r.agentService().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.agentRecords == nil {
		r.agentRecords = map[kg.AgentID]*agents.Record{}
	}
	r.agentRecords[id] = record
	return record, nil
}

// read returns the agent's record, an empty one if there is none.
func (a *Agent) read(ctx context.Context) (*agents.Record, error) {
	if a.record != nil {
		return a.record, nil
	}
	record, err := runOf(ctx).agentRecord(ctx, a.id)
	if record == nil {
		record = &agents.Record{}
	}
	return record, err
}

// ID is the id of the agent.
func (a *Agent) ID() string { return string(a.id) }

// Name is the display name, nil if it has none.
func (a *Agent) Name(ctx context.Context) (*string, error) {
	record, err := a.read(ctx)
	return nilIfEmpty(record.Name), err
}

// Owner is the agent that is responsible for it, nil for none.
func (a *Agent) Owner(ctx context.Context) (*Agent, error) {
	record, err := a.read(ctx)
	return agentIfAny(record.Owner), err
}

// OwnerID is the id of its owner.
func (a *Agent) OwnerID(ctx context.Context) (*string, error) {
	record, err := a.read(ctx)
	return nilIfEmpty(string(record.Owner)), err
}

// Roles are the roles that its credentials have had so far.
func (a *Agent) Roles(ctx context.Context) ([]string, error) {
	record, err := a.read(ctx)
	return notNil(record.Roles), err
}

// Status is whether the agent may use the server, nil without a record.
func (a *Agent) Status(ctx context.Context) (*AgentStatus, error) {
	record, err := a.read(ctx)
	if record.Status == "" {
		return nil, err
	}
	status := AgentStatus(record.Status)
	return &status, err
}

// CreatedAt is when the record was created, nil without one.
func (a *Agent) CreatedAt(ctx context.Context) (*time.Time, error) {
	record, err := a.read(ctx)
	return timeOrNil(record.Since), err
}

// StatementCount is the number of statements over all graphs. It is shown to the
// agent itself and to administrators only.
func (a *Agent) StatementCount(ctx context.Context) (*int, error) {
	r := runOf(ctx)
	if p := r.request.Principal; p.ID != a.id && !p.IsAdmin() {
		return nil, nil
	}
	backed, err := r.engine.deps.Store.SourceStatements(a.id)
	n := int(backed)
	return &n, err
}

// Presence is the presence of the agent, nil if it is unknown.
func (a *Agent) Presence(ctx context.Context) *Presence {
	tracker := runOf(ctx).engine.deps.Presence
	if tracker == nil {
		return nil
	}
	return shownPresence(tracker.Get(a.id))
}

// Registration is the registration of the agent, nil for none.
func (a *Agent) Registration(ctx context.Context) (*AgentRegistration, error) {
	record, err := a.read(ctx)
	g := shownRegistration(record.Registration)
	if g == nil || err != nil {
		return nil, err
	}
	size := len(g.Parameters) + len(g.Auth) + len(g.Limits) + len(g.Metadata) + len(g.Other)
	for _, skill := range g.Skills {
		size += len(skill)
	}
	return g, runOf(ctx).chargeBytes(size)
}

// readsRecord reports whether a selection shows more of an agent than is known
// without its record.
func readsRecord(f *executor.Selected) bool {
	return slices.ContainsFunc(f.On(agentObject).Fields, func(s executor.Selected) bool {
		return s.Name != "id" && s.Name != "__typename" && s.Name != "presence" && s.Name != "statementCount"
	})
}

// writePlannedAgent writes an agent in a planned object. Its record has been read.
func writePlannedAgent(w *writer, f *executor.Selected, id kg.AgentID) {
	begin := len(w.B)
	if err := w.Object(f.On(agentObject), agentOf(id)); err != nil { // its error is kept
		w.B = append(w.B[:begin], "null"...)
	}
}
