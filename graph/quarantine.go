package graph

import (
	"context"
	"math"

	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/provenance"
	"koine/kg"
)

// quarantineTable returns the table of quarantined agents.
func (r *run) quarantineTable() (*provenance.Quarantines, error) {
	if r.engine.deps.Quarantines == nil {
		return nil, kg.Errorf(kg.CodeInvalid, "quarantine is disabled on this server")
	}
	return r.engine.deps.Quarantines, nil
}

// QuarantineAgent answers Mutation.quarantineAgent.
func (*mutationRoot) QuarantineAgent(ctx context.Context, input QuarantineAgentInput) (*QuarantinePayload, error) {
	r := runOf(ctx)
	table, err := r.quarantineTable()
	if err != nil {
		return nil, err
	}
	m := r.graphMeta(input.Justification, nil)
	m.DryRun = deref(input.DryRun)
	e, err := table.Set(ctx, r.engine.deps.Store, m, kg.AgentID(input.AgentID), orZero(input.Since))
	return r.quarantinePayload(e, err)
}

// LiftQuarantine answers Mutation.liftQuarantine.
func (*mutationRoot) LiftQuarantine(ctx context.Context, input LiftQuarantineInput) (*QuarantinePayload, error) {
	r := runOf(ctx)
	table, err := r.quarantineTable()
	if err != nil {
		return nil, err
	}
	m := r.graphMeta(input.Justification, nil)
	m.DryRun = deref(input.DryRun)
	e, err := table.Lift(ctx, r.engine.deps.Store, m, kg.AgentID(input.AgentID))
	return r.quarantinePayload(e, err)
}

func (r *run) quarantinePayload(e *provenance.Effect, err error) (*QuarantinePayload, error) {
	if err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"agent": "agentId"}))
	}
	if e.Receipt.Committed {
		r.notePosition(e.Receipt.Position)
	}
	p := &QuarantinePayload{
		Agent: agentOf(e.Agent), AgentID: string(e.Agent), AssertionsAffected: int64(e.Assertions), StatementsAffected: int64(e.Statements), Complete: e.Complete,
		Examples: make([]StatementRecord, len(e.Examples)), DryRun: e.Receipt.DryRun, Revision: e.Receipt.Revision,
		Position: Position(r.engine.deps.Store.FormatPosition(e.Receipt.Position)), CommitID: r.commitID(e.Receipt),
	}
	for i, q := range e.Examples {
		p.Examples[i] = *recordOf(q)
	}
	return p, nil
}

// commitID returns the id of an update's commit, nil if it made none.
func (r *run) commitID(receipt kg.Receipt) *string {
	if !receipt.Committed {
		return nil
	}
	id := r.engine.deps.Store.CommitID(receipt.Revision)
	return &id
}

// Quarantines answers Query.quarantines.
func (*queryRoot) Quarantines(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*QuarantineConnection, error) {
	r := runOf(ctx)
	table, err := r.quarantineTable()
	if err != nil {
		return nil, err
	}
	p, err := r.openRange("quarantines", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultListSize, math.MaxInt)
	if err != nil {
		return nil, err
	}
	list, err := table.List(ctx, r.engine.deps.Store, r.request.Principal)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, list, func(q *provenance.Quarantine) string { return string(q.Agent) }, func(q *provenance.Quarantine) Quarantine {
		return Quarantine{Agent: agentOf(q.Agent), AgentID: string(q.Agent), Since: timeOrNil(q.Since), Commit: r.commitOf(q.Commit)}
	}), nil
}
