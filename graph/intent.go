package graph

import (
	"context"
	"encoding/json"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/graph/internal/knowledge"
	"koine/internal/intents"
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
		return service.Count(ctx, by, q.Status)
	}
	return page, nil
}

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
