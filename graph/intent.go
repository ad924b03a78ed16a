package graph

import (
	"context"
	"encoding/json"
	"iter"
	"sync/atomic"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/intents"
	"koine/internal/operation"
	"koine/kg"
)

// intentService returns the service of intents and the caller.
func (r *run) intentService() (*intents.Service, channels.Caller, error) {
	_, by, err := r.channelService()
	if err == nil && r.engine.deps.Intents == nil {
		err = kg.Errorf(kg.CodeInvalid, "intents are disabled on this server")
	}
	return r.engine.deps.Intents, by, err
}

// Intent is an intent as the caller sees it.
type Intent struct{ record *intents.Intent }

func sizeOfIntent(it *intents.Intent) int {
	return len(it.Description) + len(it.State) + len(it.Constraints) + len(it.Governance) + 64*len(it.DependsOn)
}

// readIntent answers Query.intent.
func readIntent(ctx context.Context, id string) (*Intent, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	it, err := service.Get(ctx, by, scope.ID(id))
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"scopeId": "id"})
	}
	return &Intent{it}, r.chargeBytes(sizeOfIntent(it))
}

// intentIfAny returns the intent with the id, nil for "" and if the caller has no access.
func intentIfAny(ctx context.Context, id scope.ID) (*Intent, error) {
	if id == "" {
		return nil, nil
	}
	return unlessGone(readIntent(ctx, string(id)))
}

// Intent answers Query.intent.
func (*queryRoot) Intent(ctx context.Context, id string) (*Intent, error) { return readIntent(ctx, id) }

// Intents answers Query.intents.
func (*queryRoot) Intents(ctx context.Context, status *IntentStatus, first *int, after *Cursor, last *int, before *Cursor) (*IntentConnection, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	q := intents.ListQuery{Status: intents.Status(inDomain(deref(status)))}
	p, err := r.openDomainRange("intents", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, q.Status)
	if err != nil {
		return nil, err
	}
	q.PageSize, q.Behind, q.Backward = p.size, scope.ID(p.key), p.backward
	found, end, err := service.List(ctx, by, q)
	if err == nil {
		err = chargeAll(r, found, func(it **intents.Intent) int { return sizeOfIntent(*it) })
	}
	if err != nil {
		return nil, atArgument(err)
	}
	page := newListPage(p, found, end != "", string(end), func(it **intents.Intent) string { return string((*it).ID) }, func(it **intents.Intent) Intent { return Intent{*it} })
	page.count = func(context.Context) (n int64, exact bool, err error) {
		return countIntents(ctx, service, by, q.Status)
	}
	return page, nil
}

// countIntents counts the intents with a status, or all for "". exact is false above
// maxCountedIntents.
func countIntents(ctx context.Context, service *intents.Service, by channels.Caller, status intents.Status) (n int64, exact bool, err error) {
	for q := (intents.ListQuery{Status: status, PageSize: channels.MaxPage}); n <= maxCountedIntents; {
		found, end, err := service.List(ctx, by, q)
		if n += int64(len(found)); err != nil || end == "" {
			return n, true, err
		}
		q.Behind = end
	}
	return n, false, nil
}

// maxCountedIntents bounds what totalCount reads: the status of each intent is in its record.
const maxCountedIntents = 10_000

// IntentID is the id of the intent and of its scope.
func (it *Intent) IntentID() string { return string(it.record.ID) }

// Scope is the scope of the intent.
func (it *Intent) Scope(ctx context.Context) (*Scope, error) {
	return readScope(ctx, string(it.record.ID))
}

// Title is nil if the intent has none.
func (it *Intent) Title() *string { return nilIfEmpty(it.record.Title) }

// Description is nil if the intent has none.
func (it *Intent) Description() *string { return nilIfEmpty(it.record.Description) }

// Status is the status of the intent.
func (it *Intent) Status() IntentStatus { return IntentStatus(inSchema(it.record.Status)) }

// State is a JSON object.
func (it *Intent) State() json.RawMessage { return it.record.State }

// Constraints is nil if the intent has none.
func (it *Intent) Constraints() json.RawMessage { return it.record.Constraints }

// Governance is nil if the intent has none.
func (it *Intent) Governance() json.RawMessage { return it.record.Governance }

// Confidence is how sure its agents are.
func (it *Intent) Confidence() float64 { return it.record.Confidence }

// Version increases with each change of state and status.
func (it *Intent) Version() int64 { return it.record.Version }

// Parent is nil for none, and if the caller may not see it.
func (it *Intent) Parent(ctx context.Context) (*Intent, error) {
	return intentIfAny(ctx, it.record.Parent)
}

// ParentID is nil for none.
func (it *Intent) ParentID() *string { return nilIfEmpty(string(it.record.Parent)) }

// DependsOn has nil for each intent that the caller may not see.
func (it *Intent) DependsOn(ctx context.Context) ([]*Intent, error) {
	out := make([]*Intent, len(it.record.DependsOn))
	for i, id := range it.record.DependsOn {
		var err error
		if out[i], err = intentIfAny(ctx, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DependsOnIds are the ids of the intents that this one waits for.
func (it *Intent) DependsOnIds() []string {
	out := make([]string, len(it.record.DependsOn))
	for i, id := range it.record.DependsOn {
		out[i] = string(id)
	}
	return out
}

// CreatedBy is the agent that created the intent.
func (it *Intent) CreatedBy() *Agent { return agentOf(it.record.CreatedBy) }

// CreatedByID is the id of that agent.
func (it *Intent) CreatedByID() string { return string(it.record.CreatedBy) }

// CreatedAt is when the intent was created.
func (it *Intent) CreatedAt() time.Time { return it.record.CreatedAt }

// UpdatedAt is when state or status last changed.
func (it *Intent) UpdatedAt() time.Time { return it.record.UpdatedAt }

// Assignments are those of the scope.
func (it *Intent) Assignments(ctx context.Context) ([]IntentAssignment, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	list, err := service.Assignments(ctx, by, it.record.ID)
	if err != nil {
		return nil, err
	}
	out := make([]IntentAssignment, len(list))
	for i, a := range list {
		out[i] = IntentAssignment{Agent: agentOf(a.Agent), AgentID: string(a.Agent), Role: a.Role, By: agentOf(a.By), At: a.At}
	}
	return out, nil
}

// Grants are those of the scope that are in force.
func (it *Intent) Grants(ctx context.Context) ([]AccessGrant, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	access, err := service.Access(ctx, by, it.record.ID)
	if err != nil {
		return nil, err
	}
	out := make([]AccessGrant, len(access.Grants))
	for i := range access.Grants {
		out[i] = *accessGrant(&access.Grants[i])
	}
	return out, nil
}

func accessGrant(g *scope.Grant) *AccessGrant {
	return &AccessGrant{
		GrantID: g.ID, Agent: agentIfAny(g.Agent), AgentID: nilIfEmpty(string(g.Agent)), Role: nilIfEmpty(g.Role), Level: AccessLevel(inSchema(g.Level)),
		Reason: nilIfEmpty(g.Reason), GrantedBy: agentOf(g.GrantedBy), GrantedAt: g.GrantedAt, ExpiresAt: timeOrNil(g.ExpiresAt),
	}
}

// AccessRequests reads the access requests of the intent.
func (it *Intent) AccessRequests(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*AccessRequestConnection, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("intent.accessRequests", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, it.record.ID)
	if err != nil {
		return nil, err
	}
	list, err := service.Requests().List(ctx, by, it.record.ID)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, list, func(q **intents.AccessRequest) string { return (*q).ID }, func(q **intents.AccessRequest) AccessRequest { return *accessRequest(*q) }), nil
}

func accessRequest(q *intents.AccessRequest) *AccessRequest {
	return &AccessRequest{
		RequestID: q.ID, Agent: agentOf(q.Agent), AgentID: string(q.Agent), Level: AccessLevel(inSchema(q.Level)), Reason: nilIfEmpty(q.Reason), Capabilities: notNil(q.Capabilities),
		RequestedBy: agentOf(q.RequestedBy), CreatedAt: q.CreatedAt, Status: AccessRequestStatus(inSchema(q.Status)), DecidedBy: agentIfAny(q.DecidedBy),
		DecidedAt: timeOrNil(q.DecidedAt), DecisionReason: nilIfEmpty(q.DecisionReason), GrantID: nilIfEmpty(q.Grant),
	}
}

// Leases reads the leases of the intent that hold.
func (it *Intent) Leases(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*LeaseConnection, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("intent.leases", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, it.record.ID)
	if err != nil {
		return nil, err
	}
	list, err := service.Leases().List(ctx, by, it.record.ID)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, list, func(l *intents.Lease) string { return timeKey(l.AcquiredAt) + l.ID }, func(l *intents.Lease) Lease { return *lease(l) }), nil
}

func lease(l *intents.Lease) *Lease {
	return &Lease{LeaseID: l.ID, IntentID: string(l.Intent), Scope: l.Scope, Agent: agentOf(l.Agent), AgentID: string(l.Agent), AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt}
}

// Tasks reads the tasks of the intent.
func (it *Intent) Tasks(ctx context.Context, status *IntentTaskStatus) ([]IntentTask, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	list, err := service.Tasks().List(ctx, by, it.record.ID, intents.TaskStatus(inDomain(deref(status))))
	if err != nil {
		return nil, err
	}
	out := make([]IntentTask, len(list))
	for i, t := range list {
		out[i] = IntentTask{t}
	}
	return out, chargeAll(r, list, func(t **intents.Task) int { return sizeOfIntentTask(*t) })
}

// Portfolios reads the portfolios that the intent is in.
func (it *Intent) Portfolios(ctx context.Context) ([]PortfolioMembership, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	return memberships(service.Portfolios().Of(ctx, by, it.record.ID))
}

// IntentTask is a task of an intent as the caller sees it.
type IntentTask struct{ record *intents.Task }

func sizeOfIntentTask(t *intents.Task) int {
	return len(t.Description) + len(t.Input) + len(t.Output) + len(t.Metadata) + len(t.Error)
}

// TaskID is the id of the task and of its scope.
func (t *IntentTask) TaskID() string { return string(t.record.ID) }

// IntentID is the id of the intent.
func (t *IntentTask) IntentID() string { return string(t.record.Intent) }

// ExternalID is the id that the creator chose, nil for none.
func (t *IntentTask) ExternalID() *string { return nilIfEmpty(t.record.ExternalID) }

// Name is nil if the task has none.
func (t *IntentTask) Name() *string { return nilIfEmpty(t.record.Name) }

// Description is nil if the task has none.
func (t *IntentTask) Description() *string { return nilIfEmpty(t.record.Description) }

// Status is the status of the task.
func (t *IntentTask) Status() IntentTaskStatus { return IntentTaskStatus(inSchema(t.record.Status)) }

// Priority is nil if the task has none.
func (t *IntentTask) Priority() *string { return nilIfEmpty(t.record.Priority) }

// Input is nil if the task has none.
func (t *IntentTask) Input() json.RawMessage { return t.record.Input }

// Output is nil if the task has none.
func (t *IntentTask) Output() json.RawMessage { return t.record.Output }

// Error is nil if the task has none.
func (t *IntentTask) Error() *string { return nilIfEmpty(t.record.Error) }

// AssignedAgent is the name that was given, nil for none.
func (t *IntentTask) AssignedAgent() *string { return nilIfEmpty(t.record.AssignedAgent) }

// BlockedReason is nil if none was given.
func (t *IntentTask) BlockedReason() *string { return nilIfEmpty(t.record.BlockedReason) }

// Capabilities are those that the task requires.
func (t *IntentTask) Capabilities() []string { return notNil(t.record.Capabilities) }

// DependsOn names the tasks that this one waits for.
func (t *IntentTask) DependsOn() []string { return notNil(t.record.DependsOn) }

// Metadata is nil if the task has none.
func (t *IntentTask) Metadata() json.RawMessage { return t.record.Metadata }

// CreatedBy is the agent that created the task.
func (t *IntentTask) CreatedBy() *Agent { return agentOf(t.record.CreatedBy) }

// CreatedAt is when the task was created.
func (t *IntentTask) CreatedAt() time.Time { return t.record.CreatedAt }

// StartedAt is when the task was first running, nil before.
func (t *IntentTask) StartedAt() *time.Time { return timeOrNil(t.record.StartedAt) }

// CompletedAt is when the task ended, nil before.
func (t *IntentTask) CompletedAt() *time.Time { return timeOrNil(t.record.CompletedAt) }

// Version increases with each update.
func (t *IntentTask) Version() int64 { return t.record.Version }

// Scope is the scope of the task.
func (t *IntentTask) Scope(ctx context.Context) (*Scope, error) { return scopeIfAny(ctx, t.record.ID) }

// Portfolio is a portfolio as the caller sees it.
type Portfolio struct{ record *intents.Portfolio }

func sizeOfPortfolio(p *intents.Portfolio) int {
	return len(p.Description) + len(p.Metadata) + len(p.Governance)
}

// readPortfolio answers Query.portfolio.
func readPortfolio(ctx context.Context, id string) (*Portfolio, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	p, err := service.Portfolios().Get(ctx, by, id)
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"portfolioId": "id"})
	}
	return &Portfolio{p}, r.chargeBytes(sizeOfPortfolio(p))
}

// Portfolio answers Query.portfolio.
func (*queryRoot) Portfolio(ctx context.Context, id string) (*Portfolio, error) {
	return readPortfolio(ctx, id)
}

// Portfolios answers Query.portfolios.
func (*queryRoot) Portfolios(ctx context.Context, creatorID *string, first *int, after *Cursor) (*PortfolioConnection, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	creator := kg.AgentID("")
	if creatorID != nil {
		creator = kg.CanonicalAgent(*creatorID)
	}
	p, err := r.openDomainRange("portfolios", knowledge.PageArgs{First: first, After: after}, intents.MaxPortfolioPage, creator)
	if err != nil {
		return nil, err
	}
	found, next, err := service.Portfolios().List(ctx, by, creator, p.key, p.size)
	if err == nil {
		err = chargeAll(r, found, func(p **intents.Portfolio) int { return sizeOfPortfolio(*p) })
	}
	if err != nil {
		return nil, atArgument(err)
	}
	page := newListPage(p, found, next != "", "", func(p **intents.Portfolio) string { return (*p).ID }, func(p **intents.Portfolio) Portfolio { return Portfolio{*p} })
	page.count = func(context.Context) (int64, bool, error) {
		n, err := service.Portfolios().Count(ctx, by, creator)
		return n, true, err
	}
	return page, nil
}

// PortfolioID is the id of the portfolio.
func (p *Portfolio) PortfolioID() string { return p.record.ID }

// Name is the name of the portfolio.
func (p *Portfolio) Name() string { return p.record.Name }

// Description is nil if the portfolio has none.
func (p *Portfolio) Description() *string { return nilIfEmpty(p.record.Description) }

// Status is the status of the portfolio.
func (p *Portfolio) Status() PortfolioStatus { return PortfolioStatus(inSchema(p.record.Status)) }

// Metadata is nil if the portfolio has none.
func (p *Portfolio) Metadata() json.RawMessage { return p.record.Metadata }

// Governance is nil if the portfolio has none.
func (p *Portfolio) Governance() json.RawMessage { return p.record.Governance }

// Intents reads the intents of the portfolio that the caller may see.
func (p *Portfolio) Intents(ctx context.Context) ([]PortfolioMembership, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	return memberships(service.Portfolios().Intents(ctx, by, p.record.ID))
}

// CreatedBy is the agent that created the portfolio.
func (p *Portfolio) CreatedBy() *Agent { return agentOf(p.record.CreatedBy) }

// CreatedByID is the id of that agent.
func (p *Portfolio) CreatedByID() string { return string(p.record.CreatedBy) }

// CreatedAt is when the portfolio was created.
func (p *Portfolio) CreatedAt() time.Time { return p.record.CreatedAt }

// UpdatedAt is when the portfolio last changed.
func (p *Portfolio) UpdatedAt() time.Time { return p.record.UpdatedAt }

// PortfolioMembership is the place of an intent in a portfolio.
type PortfolioMembership struct{ record intents.Membership }

func memberships(list []intents.Membership, err error) ([]PortfolioMembership, error) {
	out := make([]PortfolioMembership, len(list))
	for i, m := range list {
		out[i] = PortfolioMembership{m}
	}
	return out, err
}

// PortfolioID is the id of the portfolio.
func (m *PortfolioMembership) PortfolioID() string { return m.record.Portfolio }

// Portfolio is the portfolio.
func (m *PortfolioMembership) Portfolio(ctx context.Context) (*Portfolio, error) {
	return unlessGone(readPortfolio(ctx, m.record.Portfolio))
}

// IntentID is the id of the intent.
func (m *PortfolioMembership) IntentID() string { return string(m.record.Intent) }

// Intent is the intent.
func (m *PortfolioMembership) Intent(ctx context.Context) (*Intent, error) {
	return intentIfAny(ctx, m.record.Intent)
}

// Role is primary, member or dependency.
func (m *PortfolioMembership) Role() string { return m.record.Role }

// Priority orders the intents of a portfolio.
func (m *PortfolioMembership) Priority() int64 { return m.record.Priority }

// AddedBy is the agent that added the intent.
func (m *PortfolioMembership) AddedBy() *Agent { return agentOf(m.record.AddedBy) }

// AddedAt is when the intent was added.
func (m *PortfolioMembership) AddedAt() time.Time { return m.record.AddedAt }

// intentSource is the source of a Stream of the events of intents.
type intentSource struct {
	ownSource
	feed         *intents.Feed
	sentPosition atomic.Pointer[kg.Position]
	// current is the event being yielded.
	current intents.FeedEvent
}

// Events yields the events and messages of the feed. Messages without content are left out.
func (s *intentSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for e, err := range s.feed.All() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = e
			if !yield(intentEventOf(&e), nil) {
				return
			}
			s.sentPosition.Store(&e.Position)
		}
	}
}

// intentEventOf represents an event of the feed as the change of a statement.
func intentEventOf(e *intents.FeedEvent) operation.Event {
	if e.Message != nil {
		return eventOf(e.Message, e.Position)
	}
	q := kg.Quad{Subject: e.Intent.Entity(), Predicate: kg.Sequence, Object: kg.Integer(e.Event.Sequence), Graph: e.Intent.EventsGraph()}
	return ownEvent(kg.Add, q, &kg.Commit{Revision: e.Position.Revision, Time: e.Event.Time, Principal: e.Event.Actor, Actor: e.Event.Actor}, e.Position)
}

// Position is the position after the last event that was sent, or the zero Position if none
// is known.
func (s *intentSource) Position() kg.Position { return deref(s.sentPosition.Load()) }

// Close ends the stream.
func (s *intentSource) Close() { s.feed.Close() }

// intentEvent is the content of Subscription.intentChanged.
type intentEvent struct {
	field  *executor.Selected
	source *intentSource
}

func (c *intentEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	if m := c.source.current.Message; m != nil {
		return writePublished(w, t, c.field, m, e.Position)
	}
	change := &IntentChange{&c.source.current, t.FormatPosition(e.Position)}
	return w.Object(c.field.On(intentChangeObject), change)
}

// IntentChange is an event of an intent.
type IntentChange struct {
	record   *intents.FeedEvent
	position Position
}

// IntentID is the id of the intent.
func (c *IntentChange) IntentID() string { return string(c.record.Intent) }

// Intent is the intent in its present state.
func (c *IntentChange) Intent(ctx context.Context) (*Intent, error) {
	return intentIfAny(ctx, c.record.Intent)
}

// Event is the entry of the log.
func (c *IntentChange) Event() *ScopeEvent { return &ScopeEvent{c.record.Event} }

// Before is nil unless state or status changed.
func (c *IntentChange) Before() *IntentDifference {
	if c.record.Change == nil {
		return nil
	}
	return &IntentDifference{State: c.record.Change.OldState, Status: enumOrNil[IntentStatus](c.record.Change.OldStatus)}
}

// After is nil unless state or status changed.
func (c *IntentChange) After() *IntentDifference {
	if c.record.Change == nil {
		return nil
	}
	return &IntentDifference{State: c.record.Change.NewState, Status: enumOrNil[IntentStatus](c.record.Change.NewStatus)}
}

// Position is the position after the event.
func (c *IntentChange) Position() *Position { return &c.position }

// IntentChanged establishes Subscription.intentChanged.
func (*subscriptionRoot) IntentChanged(ctx context.Context, f *executor.Selected, args *subscriptionIntentChangedArgs) (*Stream, error) {
	service, by, err := runOf(ctx).intentService()
	if err != nil {
		return nil, err
	}
	q := intents.FeedQuery{Intent: scope.ID(deref(args.IntentID)), Portfolio: deref(args.PortfolioID)}
	if args.IntentID == nil && args.PortfolioID == nil {
		if q.Agent, err = by.ActingAgent(); err != nil {
			return nil, err
		}
	}
	return subscribeOwn(ctx, f, args.Resume, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		from, told := o.startPosition()
		if told == nil { // the beginning of the log
			from = kg.Position{Epoch: o.store.Head().Epoch, Index: kg.EndOfCommit}
		}
		q.After = &from
		feed, err := service.Follow(o.streamCtx, by, q)
		if err != nil {
			return nil, nil, withFieldNames(err, map[string]string{"scopeId": "intentId"})
		}
		s := &intentSource{ownSource: ownSource{o.store}, feed: feed}
		s.sentPosition.Store(told)
		return &intentEvent{field: o.field, source: s}, s, nil
	})
}
