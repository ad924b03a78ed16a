package graph

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/kg"
)

// Scope is a scope as the caller sees it.
type Scope struct{ record *scope.Scope }

// readScope answers Query.scope.
func readScope(ctx context.Context, id string) (*Scope, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	s, err := service.Scopes().Get(ctx, by, scope.ID(id))
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"scopeId": "id"})
	}
	return &Scope{s}, r.chargeBytes(sizeOfScope(s))
}

// scopeIfAny returns the scope with the id, nil for "" and if the caller has
// no access.
func scopeIfAny(ctx context.Context, id scope.ID) (*Scope, error) {
	if id == "" {
		return nil, nil
	}
	return unlessGone(readScope(ctx, string(id)))
}

func sizeOfScope(s *scope.Scope) int { return 64 * (len(s.Access.Agents) + len(s.Access.Roles)) }

// Scopes answers Query.scopes.
func (*queryRoot) Scopes(ctx context.Context, parentID *string, status *ScopeStatus, first *int, after *Cursor, last *int, before *Cursor) (*ScopeConnection, error) {
	l := scope.ListQuery{Parent: scope.ID(deref(parentID)), Status: scope.Status(inDomain(deref(status)))}
	return runOf(ctx).listScopes(ctx, "scopes", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, l)
}

func (r *run) listScopes(ctx context.Context, list string, a knowledge.PageArgs, l scope.ListQuery) (*ScopeConnection, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange(list, a, channels.MaxPage, l.Parent, l.Status)
	if err != nil {
		return nil, err
	}
	l.PageSize, l.Behind, l.Backward = p.size, scope.ID(p.key), p.backward
	found, end, err := service.Scopes().ListPage(ctx, by, l)
	if err == nil {
		err = chargeAll(r, found, func(s **scope.Scope) int { return sizeOfScope(*s) })
	}
	if err != nil {
		return nil, atArgument(err)
	}
	page := newListPage(p, found, end != "", string(end), func(s **scope.Scope) string { return string((*s).ID) }, func(s **scope.Scope) Scope { return Scope{*s} })
	page.count = func(context.Context) (int64, bool, error) {
		n, exact, err := service.Scopes().CountScopes(by, l)
		return int64(n), exact, err
	}
	return page, nil
}

// ID is the id of the scope.
func (s *Scope) ID() string { return string(s.record.ID) }

// Kind is intent or task.
func (s *Scope) Kind() ScopeKind {
	if s.record.Parent == "" {
		return ScopeKindIntent
	}
	return ScopeKindTask
}

// Parent is the intent of a task, nil for an intent.
func (s *Scope) Parent(ctx context.Context) (*Scope, error) { return scopeIfAny(ctx, s.record.Parent) }

// ParentID is the id of the parent.
func (s *Scope) ParentID() *string { return nilIfEmpty(string(s.record.Parent)) }

// Title is nil if the scope has none.
func (s *Scope) Title() *string { return nilIfEmpty(s.record.Title) }

// Status is the status of the scope.
func (s *Scope) Status() ScopeStatus { return ScopeStatus(inSchema(s.record.Status)) }

// Access lists the agents and roles with access.
func (s *Scope) Access() *ScopeAccess {
	a := &s.record.Access
	return &ScopeAccess{Everybody: a.Everybody, Agents: agentsOf(a.Agents), AgentIds: agentTexts(a.Agents), Roles: notNil(a.Roles)}
}

// Coordinator is nil for none.
func (s *Scope) Coordinator() *Agent { return agentIfAny(s.record.Coordinator) }

// CoordinatorID is the id of the coordinator.
func (s *Scope) CoordinatorID() *string { return nilIfEmpty(string(s.record.Coordinator)) }

// CreatedAt is when the scope was created.
func (s *Scope) CreatedAt() time.Time { return s.record.CreatedAt }

// CreatedBy is the agent that created the scope.
func (s *Scope) CreatedBy() *Agent { return agentOf(s.record.CreatedBy) }

// CreatedByID is the id of that agent.
func (s *Scope) CreatedByID() string { return string(s.record.CreatedBy) }

// EndedAt is nil while the scope is active.
func (s *Scope) EndedAt() *time.Time { return timeOrNil(s.record.EndedAt) }

// EndReason is nil if none was given.
func (s *Scope) EndReason() *string { return nilIfEmpty(s.record.EndReason) }

// Version increases with each change of the scope.
func (s *Scope) Version() int64 { return s.record.Version }

// Tasks reads the tasks of an intent.
func (s *Scope) Tasks(ctx context.Context, status *ScopeStatus, first *int, after *Cursor, last *int, before *Cursor) (*ScopeConnection, error) {
	l := scope.ListQuery{Parent: s.record.ID, Status: scope.Status(inDomain(deref(status)))}
	return runOf(ctx).listScopes(ctx, "scope.tasks", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, l)
}

// Channels reads the channels of the scope.
func (s *Scope) Channels(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*ChannelConnection, error) {
	return runOf(ctx).listChannels(ctx, "scope.channels", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channel.ListQuery{Scope: s.record.ID})
}

// Entity is the scope as an entity.
func (s *Scope) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return knowledge.ReadOwnEntity(ctx, f, s.record.ID.Entity())
}

// changedScope answers a mutation of a scope.
func (r *run) changedScope(s *scope.Scope, err error) (*ScopePayload, error) {
	if err != nil {
		return nil, inInput(withFieldNames(err, inInputs))
	}
	r.notePosition(r.engine.deps.Store.Head())
	return &ScopePayload{Scope: &Scope{s}}, r.chargeBytes(sizeOfScope(s))
}

// CreateScope answers Mutation.createScope.
func (*mutationRoot) CreateScope(ctx context.Context, input CreateScopeInput) (*ScopePayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedScope(service.Scopes().Create(ctx, by, scope.Draft{
		Parent: scope.ID(deref(input.ParentID)), Title: deref(input.Title), Access: deref(accessIn(input.Access)),
		Coordinator: kg.AgentID(deref(input.CoordinatorID)), IdempotencyKey: deref(input.IdempotencyKey),
	}))
}

// accessIn converts an input of access, nil for nil.
func accessIn(input *ScopeAccessInput) *scope.Access {
	if input == nil {
		return nil
	}
	a := &scope.Access{Everybody: input.Everybody, Roles: input.Roles}
	for _, agent := range input.AgentIds {
		a.Agents = append(a.Agents, kg.AgentID(agent))
	}
	return a
}

// UpdateScope answers Mutation.updateScope.
func (*mutationRoot) UpdateScope(ctx context.Context, input UpdateScopeInput) (*ScopePayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	change := scope.Update{ExpectedVersion: input.ExpectedVersion, Title: input.Title, Access: accessIn(input.Access)}
	if input.CoordinatorID != nil {
		coordinator := kg.AgentID(*input.CoordinatorID)
		change.Coordinator = &coordinator
	}
	return r.changedScope(service.Scopes().Update(ctx, by, scope.ID(input.ScopeID), change))
}

// EndScope answers Mutation.endScope.
func (*mutationRoot) EndScope(ctx context.Context, input EndScopeInput) (*ScopePayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	end := service.Scopes().End
	if r.engine.deps.Intents != nil { // the log of the intent has the end
		end = r.engine.deps.Intents.End
	}
	return r.changedScope(end(ctx, by, scope.ID(input.ScopeID), scope.Status(inDomain(input.Status)), deref(input.Reason)))
}

// ScopeEvent is an event of a scope.
type ScopeEvent struct{ record *scope.Event }

// Events reads a page of the scope's event log.
func (s *Scope) Events(ctx context.Context, sinceSequence *int64, first *int, after *Cursor, last *int, before *Cursor) (*ScopeEventConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("scope.events", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, s.record.ID)
	if err != nil {
		return nil, err
	}
	since := deref(sinceSequence)
	if since < 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "sinceSequence must not be negative").At("sinceSequence")
	}
	newest, err := service.Scopes().LastEvent(ctx, by, s.record.ID)
	if err != nil {
		return nil, err
	}
	from, to := p.numbers(since, newest)
	var list []*scope.Event
	if to >= from {
		list, err = service.Scopes().Events(ctx, by, s.record.ID, from, int(to-from+1))
	}
	if err == nil {
		err = chargeAll(r, list, func(e **scope.Event) int { return len((*e).Data) })
	}
	if err != nil {
		return nil, err
	}
	more := to < newest
	if p.backward {
		slices.Reverse(list)
		more = from > since+1
	}
	page := newListPage(p, list, more, "", func(e **scope.Event) string { return strconv.FormatInt((*e).Sequence, 10) }, func(e **scope.Event) ScopeEvent { return ScopeEvent{*e} })
	page.count = exactly(int(max(0, newest-since)))
	return page, nil
}

// VerifyEvents verifies the hash chain of the scope's events.
func (s *Scope) VerifyEvents(ctx context.Context, fromSequence int64) (*ScopeEventCheck, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	if fromSequence < 1 {
		return nil, kg.Errorf(kg.CodeInvalid, "fromSequence must be at least 1").At("fromSequence")
	}
	check, err := service.Scopes().VerifyEvents(ctx, by, s.record.ID, fromSequence)
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"from": "fromSequence"})
	}
	return &ScopeEventCheck{VerifiedCount: check.Verified, LastHash: nilIfEmpty(check.Head), NextSequence: unlessZero(check.Next)}, nil
}

// Sequence is the number of the event in its scope.
func (e *ScopeEvent) Sequence() int64 { return e.record.Sequence }

// Type is the type of the event.
func (e *ScopeEvent) Type() string { return e.record.Type }

// Actor is the agent that caused the event.
func (e *ScopeEvent) Actor() *Agent { return agentOf(e.record.Actor) }

// ActorID is the id of that agent.
func (e *ScopeEvent) ActorID() string { return string(e.record.Actor) }

// Time is when the event happened.
func (e *ScopeEvent) Time() time.Time { return e.record.Time }

// Data is a JSON object.
func (e *ScopeEvent) Data() json.RawMessage { return e.record.Data }

// Message is the message that the event copies, nil if the caller may not read
// it.
func (e *ScopeEvent) Message(ctx context.Context) (*Message, error) {
	var data struct{ MessageID message.ID }
	if e.record.Type != scope.EventMessage || json.Unmarshal(e.record.Data, &data) != nil {
		return nil, nil
	}
	return messageIfAny(ctx, data.MessageID)
}

// Copy is the audit copy of that message, nil if the caller may not read it.
func (e *ScopeEvent) Copy(ctx context.Context) (json.RawMessage, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	c, err := service.Scopes().EventCopy(ctx, by, e.record)
	if err != nil || c == nil {
		return nil, err
	}
	return c.JSON(), nil
}

// TraceID is nil without a trace.
func (e *ScopeEvent) TraceID() *string { return nilIfEmpty(e.record.TraceID) }

// ParentSequence is nil for an event that follows from no other.
func (e *ScopeEvent) ParentSequence() *int64 { return unlessZero(e.record.ParentEvent) }

// PreviousHash is nil for the first event.
func (e *ScopeEvent) PreviousHash() *string { return nilIfEmpty(e.record.Previous) }

// Hash is the hash of the event and of all events before it.
func (e *ScopeEvent) Hash() string { return e.record.Hash }
