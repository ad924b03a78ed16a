package graph

import (
	"context"
	"time"

	"koine/graph/internal/views"
	"koine/internal/tasks"
	"koine/kg/base"
)

// The functions of the root fields are methods of these types: those of
// mutations, and of fields that plan their selection, stand beside what they
// call, the others here.
type (
	queryRoot        struct{}
	mutationRoot     struct{}
	subscriptionRoot struct{}
)

// Audit answers Query.audit.
func (*queryRoot) Audit(ctx context.Context, first *int, after *Cursor, principalID *string, actorID *string, since *time.Time, until *time.Time, kinds []AuditKind, channelID *string) (*AuditConnection, error) {
	return auditList(ctx, auditQuery{first, after, principalID, actorID, since, until, kinds, channelID})
}

// Why answers Query.why.
func (*queryRoot) Why(ctx context.Context, statement StatementRef, first *int, view *views.ViewInput) (*StatementExplanation, error) {
	return explainStatement(ctx, statement, first, view)
}

// Proposals answers Query.proposals.
func (*queryRoot) Proposals(ctx context.Context, status *ProposalStatus, authorID *string, first *int, after *string) (*ProposalConnection, error) {
	return readProposals(ctx, status, authorID, first, after)
}

// Proposal answers Query.proposal.
func (*queryRoot) Proposal(ctx context.Context, id string) (*Proposal, error) {
	return readProposal(ctx, id)
}

// Contradictions answers Query.contradictions.
func (*queryRoot) Contradictions(ctx context.Context, first *int, after *Cursor, view *views.ViewInput) (*ContradictionConnection, error) {
	return readContradictions(ctx, first, after, view)
}

// Quarantines answers Query.quarantines.
func (*queryRoot) Quarantines(ctx context.Context) ([]Quarantine, error) {
	return readQuarantines(ctx)
}

// Vocabulary answers Query.vocabulary.
func (*queryRoot) Vocabulary(ctx context.Context, view *views.ViewInput) (*Vocabulary, error) {
	return readVocabulary(ctx, view)
}

// Me answers Query.me.
func (*queryRoot) Me(ctx context.Context) (*Principal, error) {
	return readMe(ctx)
}

// Agents answers Query.agents.
func (*queryRoot) Agents(ctx context.Context, first *int, after *string, capability *string) ([]Agent, error) {
	return readAgents(ctx, first, after, capability)
}

// Agent answers Query.agent.
func (*queryRoot) Agent(ctx context.Context, id string) (*Agent, error) {
	return readAgent(ctx, id)
}

// APIKeys answers Query.apiKeys.
func (*queryRoot) APIKeys(ctx context.Context, agentID *string, includeEnded bool, first *int, after *string) ([]APIKey, error) {
	return readAPIKeys(ctx, agentID, includeEnded, first, after)
}

// Stats answers Query.stats.
func (*queryRoot) Stats(ctx context.Context, view *views.ViewInput) (*Stats, error) {
	return readStats(ctx, view)
}

// Revision answers Query.revision.
func (*queryRoot) Revision(ctx context.Context) (*base.Revision, error) {
	return readRevision(ctx)
}

// Graphs answers Query.graphs.
func (*queryRoot) Graphs(ctx context.Context, first *int, after *base.Term) ([]Graph, error) {
	return readGraphs(ctx, first, after)
}

// Channel answers Query.channel.
func (*queryRoot) Channel(ctx context.Context, id string) (*Channel, error) {
	return readChannel(ctx, id)
}

// Channels answers Query.channels.
func (*queryRoot) Channels(ctx context.Context, first *int, after *Cursor, visibility *ChannelVisibility, memberID *string, invited bool, scopeID *string) (*ChannelConnection, error) {
	return readChannels(ctx, first, after, visibility, memberID, invited, scopeID)
}

// Scope answers Query.scope.
func (*queryRoot) Scope(ctx context.Context, id string) (*Scope, error) {
	return readScope(ctx, id)
}

// Scopes answers Query.scopes.
func (*queryRoot) Scopes(ctx context.Context, first *int, after *Cursor, parentID *string, status *ScopeStatus) (*ScopeConnection, error) {
	return readScopes(ctx, first, after, parentID, status)
}

// GlobalRestrictions answers Query.globalRestrictions.
func (*queryRoot) GlobalRestrictions(ctx context.Context) ([]ChannelRestriction, error) {
	return readGlobalRestrictions(ctx)
}

// Message answers Query.message.
func (*queryRoot) Message(ctx context.Context, id string) (*Message, error) {
	return readMessage(ctx, id)
}

// Inbox answers Query.inbox.
func (*queryRoot) Inbox(ctx context.Context, first *int, after *Position) (*Inbox, error) {
	return readInbox(ctx, first, after)
}

// Graph answers Query.graph.
func (*queryRoot) Graph(ctx context.Context, iri *base.Term) (*Graph, error) {
	return readGraph(ctx, iri)
}

// Shapes answers Query.shapes.
func (*queryRoot) Shapes(ctx context.Context) ([]Shape, error) {
	return readShapes(ctx), nil
}

// UnsupportedShapeParts answers Query.unsupportedShapeParts.
func (*queryRoot) UnsupportedShapeParts(ctx context.Context) ([]UnsupportedShapePart, error) {
	return leftOut(runOf(ctx).engine.shapeSet().LeftOut()), nil
}

// Violations answers Query.violations.
func (*queryRoot) Violations(ctx context.Context, first *int, shape *base.Term, view *views.ViewInput) (*ValidationReport, error) {
	return readViolations(ctx, first, shape, view)
}

// Task answers Query.task.
func (*queryRoot) Task(ctx context.Context, id string) (*Task, error) {
	return readTask(ctx, id)
}

// Tasks answers Query.tasks.
func (*queryRoot) Tasks(ctx context.Context, first *int, after *Cursor, createdByMe bool, handledByMe bool, contextID *string, handlerID *string, states []TaskState, parentID *string, since *time.Time) (*TaskConnection, error) {
	q := tasks.Query{Created: createdByMe, Handled: handledByMe, Context: deref(contextID), Parent: tasks.TaskID(deref(parentID))}
	return readTasks(ctx, first, after, q, handlerID, states, since)
}
