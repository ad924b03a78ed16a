package graph

import (
	"context"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// inIntentInputs maps the domain's field names to the members of the inputs of intents.
var inIntentInputs = map[string]string{
	"scopeId": "intentId", "parent": "parentId", "dependsOn": "dependsOnIds", "coordinator": "coordinatorId", "access.agents": "access.agentIds",
	"agent": "agentId", "durationSeconds": "seconds", "governancePolicy": "governance",
}

// mutated notes the position after a mutation of an intent, or places its error in the input.
func (r *run) mutated(err error) error {
	if err != nil {
		return inInput(withFieldNames(err, inIntentInputs))
	}
	r.notePosition(r.engine.deps.Store.Head())
	return nil
}

// intentPayload answers a mutation of an intent.
func (r *run) intentPayload(it *intents.Intent, err error) (*IntentPayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &IntentPayload{Intent: &Intent{it}}, r.chargeBytes(sizeOfIntent(it))
}

// CreateIntent answers Mutation.createIntent.
func (*mutationRoot) CreateIntent(ctx context.Context, input CreateIntentInput) (*IntentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	d := intents.NewIntent{
		Title: input.Title, Description: deref(input.Description), Parent: scope.ID(deref(input.ParentID)), Constraints: input.Constraints, State: input.State, Governance: input.Governance,
		Status: intents.Status(inDomain(input.Status)), Confidence: input.Confidence, Access: deref(accessIn(input.Access)), Coordinator: kg.AgentID(deref(input.CoordinatorID)),
		IdempotencyKey: deref(input.IdempotencyKey),
	}
	for _, id := range input.DependsOnIds {
		d.DependsOn = append(d.DependsOn, scope.ID(id))
	}
	return r.intentPayload(service.Create(ctx, by, d))
}

// PatchIntentState answers Mutation.patchIntentState.
func (*mutationRoot) PatchIntentState(ctx context.Context, input PatchIntentStateInput) (*IntentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	patches := make([]intents.Patch, len(input.Patches))
	for i, p := range input.Patches {
		patches[i] = intents.Patch{Op: intents.Op(inDomain(p.Op)), Path: p.Path, Value: p.Value}
	}
	return r.intentPayload(service.PatchState(ctx, by, scope.ID(input.IntentID), input.ExpectedVersion, patches))
}

// SetIntentStatus answers Mutation.setIntentStatus.
func (*mutationRoot) SetIntentStatus(ctx context.Context, input SetIntentStatusInput) (*IntentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.intentPayload(service.SetStatus(ctx, by, scope.ID(input.IntentID), input.ExpectedVersion, intents.Status(inDomain(input.Status)), deref(input.Reason)))
}

// AssignAgent answers Mutation.assignAgent.
func (*mutationRoot) AssignAgent(ctx context.Context, input AssignAgentInput) (*IntentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	id := scope.ID(input.IntentID)
	if _, err := service.Assign(ctx, by, id, kg.AgentID(input.AgentID), input.Role); err != nil {
		return nil, r.mutated(err)
	}
	return r.intentPayload(service.Get(ctx, by, id))
}

// UnassignAgent answers Mutation.unassignAgent.
func (*mutationRoot) UnassignAgent(ctx context.Context, input UnassignAgentInput) (*IntentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	id := scope.ID(input.IntentID)
	if _, err := service.Unassign(ctx, by, id, kg.AgentID(input.AgentID)); err != nil {
		return nil, r.mutated(err)
	}
	return r.intentPayload(service.Get(ctx, by, id))
}

// accessGrantPayload answers a mutation of a grant.
func (r *run) accessGrantPayload(g *scope.Grant, err error) (*AccessGrantPayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &AccessGrantPayload{Grant: accessGrant(g)}, nil
}

// GrantAccess answers Mutation.grantAccess.
func (*mutationRoot) GrantAccess(ctx context.Context, input GrantAccessInput) (*AccessGrantPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.accessGrantPayload(service.Grant(ctx, by, scope.ID(input.IntentID), scope.Grant{
		Agent: kg.AgentID(deref(input.AgentID)), Role: deref(input.Role), Level: scope.Level(inDomain(input.Level)), Reason: deref(input.Reason), ExpiresAt: orZero(input.ExpiresAt),
	}))
}

// RevokeAccess answers Mutation.revokeAccess.
func (*mutationRoot) RevokeAccess(ctx context.Context, input RevokeAccessInput) (*AccessGrantPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.accessGrantPayload(service.Revoke(ctx, by, scope.ID(input.IntentID), input.GrantID))
}

// accessRequestPayload answers a mutation of an access request.
func (r *run) accessRequestPayload(q *intents.AccessRequest, err error) (*AccessRequestPayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &AccessRequestPayload{Request: accessRequest(q)}, nil
}

// RequestAccess answers Mutation.requestAccess.
func (*mutationRoot) RequestAccess(ctx context.Context, input RequestAccessInput) (*AccessRequestPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.accessRequestPayload(service.Requests().Create(ctx, by, intents.AccessRequest{
		Intent: scope.ID(input.IntentID), Agent: kg.AgentID(deref(input.AgentID)), Level: scope.Level(inDomain(input.Level)), Reason: deref(input.Reason), Capabilities: input.Capabilities,
	}))
}

// DecideAccessRequest answers Mutation.decideAccessRequest.
func (*mutationRoot) DecideAccessRequest(ctx context.Context, input DecideAccessRequestInput) (*AccessRequestPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	d := intents.Decision{Approve: input.Approve, Level: scope.Level(inDomain(deref(input.Level))), ExpiresAt: orZero(input.ExpiresAt), Reason: deref(input.Reason)}
	return r.accessRequestPayload(service.Requests().Decide(ctx, by, scope.ID(input.IntentID), input.RequestID, d))
}

// leasePayload answers a mutation of a lease.
func (r *run) leasePayload(l *intents.Lease, err error) (*LeasePayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &LeasePayload{Lease: lease(l)}, nil
}

// AcquireLease answers Mutation.acquireLease.
func (*mutationRoot) AcquireLease(ctx context.Context, input AcquireLeaseInput) (*LeasePayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.leasePayload(service.Leases().Acquire(ctx, by, scope.ID(input.IntentID), input.Scope, leaseSeconds(input.Seconds)))
}

// leaseSeconds returns the duration of a lease. 0 is out of bounds here: the domain takes it
// for its default.
func leaseSeconds(n int) time.Duration {
	if n == 0 {
		return -1
	}
	return time.Duration(n) * time.Second
}

// RenewLease answers Mutation.renewLease.
func (*mutationRoot) RenewLease(ctx context.Context, input RenewLeaseInput) (*LeasePayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.leasePayload(service.Leases().Renew(ctx, by, scope.ID(input.IntentID), input.LeaseID, leaseSeconds(input.Seconds)))
}

// ReleaseLease answers Mutation.releaseLease.
func (*mutationRoot) ReleaseLease(ctx context.Context, input ReleaseLeaseInput) (*LeasePayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.leasePayload(service.Leases().Release(ctx, by, scope.ID(input.IntentID), input.LeaseID))
}

// intentTaskPayload answers a mutation of a task of an intent.
func (r *run) intentTaskPayload(t *intents.Task, err error) (*IntentTaskPayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &IntentTaskPayload{Task: &IntentTask{t}}, r.chargeBytes(sizeOfIntentTask(t))
}

// CreateIntentTask answers Mutation.createIntentTask.
func (*mutationRoot) CreateIntentTask(ctx context.Context, input CreateIntentTaskInput) (*IntentTaskPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.intentTaskPayload(service.Tasks().Create(ctx, by, scope.ID(input.IntentID), intents.TaskDraft{
		Name: input.Name, ExternalID: deref(input.ExternalID), TaskFields: intents.TaskFields{
			Description: deref(input.Description), Priority: deref(input.Priority), Input: input.Input, Metadata: input.Metadata,
			AssignedAgent: deref(input.AssignedAgent), Capabilities: input.Capabilities, DependsOn: input.DependsOn,
		},
	}))
}

// UpdateIntentTask answers Mutation.updateIntentTask.
func (*mutationRoot) UpdateIntentTask(ctx context.Context, input UpdateIntentTaskInput) (*IntentTaskPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	u := intents.TaskUpdate{Output: input.Output, Error: input.Error, AssignedAgent: input.AssignedAgent, BlockedReason: input.BlockedReason}
	if input.Status != nil {
		status := intents.TaskStatus(inDomain(*input.Status))
		u.Status = &status
	}
	t, err := service.Tasks().Update(ctx, by, scope.ID(input.TaskID), input.ExpectedVersion, u)
	return r.intentTaskPayload(t, withFieldNames(err, map[string]string{"scopeId": "taskId"}))
}

// portfolioPayload answers a mutation of a portfolio.
func (r *run) portfolioPayload(p *intents.Portfolio, err error) (*PortfolioPayload, error) {
	if err := r.mutated(err); err != nil {
		return nil, err
	}
	return &PortfolioPayload{Portfolio: &Portfolio{p}}, r.chargeBytes(sizeOfPortfolio(p))
}

// CreatePortfolio answers Mutation.createPortfolio.
func (*mutationRoot) CreatePortfolio(ctx context.Context, input CreatePortfolioInput) (*PortfolioPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	return r.portfolioPayload(service.Portfolios().Create(ctx, by, intents.Portfolio{
		Name: input.Name, Description: deref(input.Description), Metadata: input.Metadata, Governance: input.Governance,
	}))
}

// AddToPortfolio answers Mutation.addToPortfolio.
func (*mutationRoot) AddToPortfolio(ctx context.Context, input AddToPortfolioInput) (*PortfolioPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	if _, err := service.Portfolios().AddIntent(ctx, by, input.PortfolioID, scope.ID(input.IntentID), input.Role, input.Priority); err != nil {
		return nil, r.mutated(err)
	}
	return r.portfolioPayload(service.Portfolios().Get(ctx, by, input.PortfolioID))
}

// RemoveFromPortfolio answers Mutation.removeFromPortfolio.
func (*mutationRoot) RemoveFromPortfolio(ctx context.Context, input RemoveFromPortfolioInput) (*PortfolioPayload, error) {
	r := runOf(ctx)
	service, by, err := r.intentService()
	if err != nil {
		return nil, err
	}
	if err := service.Portfolios().RemoveIntent(ctx, by, input.PortfolioID, scope.ID(input.IntentID)); err != nil {
		return nil, r.mutated(err)
	}
	return r.portfolioPayload(service.Portfolios().Get(ctx, by, input.PortfolioID))
}
