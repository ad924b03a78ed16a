package graph

import (
	"context"
	"time"

	"koine/internal/tasks"
	"koine/kg/base"
)

// The functions of the root fields are methods of these types: those of fields
// that plan their selection stand beside their plans, the others here.
type (
	queryRoot        struct{}
	mutationRoot     struct{}
	subscriptionRoot struct{}
)

// QuarantineAgent answers Mutation.quarantineAgent.
func (*mutationRoot) QuarantineAgent(ctx context.Context, input QuarantineAgentInput) (*QuarantinePayload, error) {
	return quarantineAgent(ctx, input)
}

// RevertCommit answers Mutation.revertCommit.
func (*mutationRoot) RevertCommit(ctx context.Context, input RevertCommitInput) (*RevertCommitPayload, error) {
	return revertCommit(ctx, input)
}

// ResolveContradiction answers Mutation.resolveContradiction.
func (*mutationRoot) ResolveContradiction(ctx context.Context, input ResolveContradictionInput) (*ResolveContradictionPayload, error) {
	return resolveContradiction(ctx, input)
}

// LiftQuarantine answers Mutation.liftQuarantine.
func (*mutationRoot) LiftQuarantine(ctx context.Context, input LiftQuarantineInput) (*QuarantinePayload, error) {
	return liftQuarantine(ctx, input)
}

// RegisterPrefix answers Mutation.registerPrefix.
func (*mutationRoot) RegisterPrefix(ctx context.Context, input RegisterPrefixInput) (*NamespacesPayload, error) {
	return registerPrefix(ctx, input)
}

// RemovePrefix answers Mutation.removePrefix.
func (*mutationRoot) RemovePrefix(ctx context.Context, name string) (*NamespacesPayload, error) {
	return removePrefix(ctx, name)
}

// AllowSchemes answers Mutation.allowSchemes.
func (*mutationRoot) AllowSchemes(ctx context.Context, names []string) (*NamespacesPayload, error) {
	return allowSchemes(ctx, names)
}

// ForbidSchemes answers Mutation.forbidSchemes.
func (*mutationRoot) ForbidSchemes(ctx context.Context, names []string) (*NamespacesPayload, error) {
	return forbidSchemes(ctx, names)
}

// CreateAPIKey answers Mutation.createApiKey.
func (*mutationRoot) CreateAPIKey(ctx context.Context, input CreateAPIKeyInput) (*APIKeyPayload, error) {
	return createAPIKey(ctx, input)
}

// RotateAPIKey answers Mutation.rotateApiKey.
func (*mutationRoot) RotateAPIKey(ctx context.Context, input RotateAPIKeyInput) (*APIKeyPayload, error) {
	return rotateAPIKey(ctx, input)
}

// RevokeAPIKey answers Mutation.revokeApiKey.
func (*mutationRoot) RevokeAPIKey(ctx context.Context, id string) (*APIKey, error) {
	return revokeAPIKey(ctx, id)
}

// UpdateAgent answers Mutation.updateAgent.
func (*mutationRoot) UpdateAgent(ctx context.Context, input UpdateAgentInput) (*Agent, error) {
	return updateAgent(ctx, input)
}

// RegisterAgent answers Mutation.registerAgent.
func (*mutationRoot) RegisterAgent(ctx context.Context, input RegisterAgentInput) (*Agent, error) {
	return registerAgent(ctx, input)
}

// DeregisterAgent answers Mutation.deregisterAgent.
func (*mutationRoot) DeregisterAgent(ctx context.Context, id string) (*Agent, error) {
	return deregisterAgent(ctx, id)
}

// Heartbeat answers Mutation.heartbeat.
func (*mutationRoot) Heartbeat(ctx context.Context, status *PresenceStatus) (*Presence, error) {
	return heartbeat(ctx, status)
}

// ApplyPatches answers Mutation.applyPatches.
func (*mutationRoot) ApplyPatches(ctx context.Context, input ApplyPatchesInput) (*ApplyPatchesPayload, error) {
	return applyPatches(ctx, input)
}

// CreateGraph answers Mutation.createGraph.
func (*mutationRoot) CreateGraph(ctx context.Context, input CreateGraphInput) (*GraphPayload, error) {
	return createGraph(ctx, input)
}

// SetGraphPolicy answers Mutation.setGraphPolicy.
func (*mutationRoot) SetGraphPolicy(ctx context.Context, input SetGraphPolicyInput) (*GraphPayload, error) {
	return setGraphPolicy(ctx, input)
}

// ReplaceGraph answers Mutation.replaceGraph.
func (*mutationRoot) ReplaceGraph(ctx context.Context, input ReplaceGraphInput) (*ReplaceGraphPayload, error) {
	return replaceGraph(ctx, input)
}

// DeleteGraph answers Mutation.deleteGraph.
func (*mutationRoot) DeleteGraph(ctx context.Context, input DeleteGraphInput) (*DeleteGraphPayload, error) {
	return deleteGraph(ctx, input)
}

// SetShapes answers Mutation.setShapes.
func (*mutationRoot) SetShapes(ctx context.Context, turtle string, supportedOnly *bool, dryRun *bool, justification *string) (*SetShapesPayload, error) {
	return setShapes(ctx, turtle, supportedOnly, dryRun, justification)
}

// RemoveShapes answers Mutation.removeShapes.
func (*mutationRoot) RemoveShapes(ctx context.Context, shapes []base.Term, dryRun *bool, justification *string) (*ApplyPatchesPayload, error) {
	return removeShapes(ctx, shapes, dryRun, justification)
}

// ReviewProposal answers Mutation.reviewProposal.
func (*mutationRoot) ReviewProposal(ctx context.Context, id string, decision ReviewDecision, comment *string, expectedRevision *base.Revision) (*Proposal, error) {
	return reviewProposal(ctx, id, decision, comment, expectedRevision)
}

// WithdrawProposal answers Mutation.withdrawProposal.
func (*mutationRoot) WithdrawProposal(ctx context.Context, id string) (*Proposal, error) {
	return withdrawProposal(ctx, id)
}

// CreateChannel answers Mutation.createChannel.
func (*mutationRoot) CreateChannel(ctx context.Context, input CreateChannelInput) (*Channel, error) {
	return createChannel(ctx, input)
}

// UpdateChannel answers Mutation.updateChannel.
func (*mutationRoot) UpdateChannel(ctx context.Context, input UpdateChannelInput) (*Channel, error) {
	return updateChannel(ctx, input)
}

// DeleteChannel answers Mutation.deleteChannel.
func (*mutationRoot) DeleteChannel(ctx context.Context, channelID string) (*DeleteChannelPayload, error) {
	return deleteChannel(ctx, channelID)
}

// AddChannelMember answers Mutation.addChannelMember.
func (*mutationRoot) AddChannelMember(ctx context.Context, input AddChannelMemberInput) (*Channel, error) {
	return addChannelMember(ctx, input)
}

// RemoveChannelMember answers Mutation.removeChannelMember.
func (*mutationRoot) RemoveChannelMember(ctx context.Context, input RemoveChannelMemberInput) (*Channel, error) {
	return removeChannelMember(ctx, input)
}

// CloseChannel answers Mutation.closeChannel.
func (*mutationRoot) CloseChannel(ctx context.Context, input CloseChannelInput) (*Channel, error) {
	return closeChannel(ctx, input)
}

// JoinChannel answers Mutation.joinChannel.
func (*mutationRoot) JoinChannel(ctx context.Context, input JoinChannelInput) (*Channel, error) {
	return joinChannel(ctx, input)
}

// LeaveChannel answers Mutation.leaveChannel.
func (*mutationRoot) LeaveChannel(ctx context.Context, channelID string) (*LeaveChannelPayload, error) {
	return leaveChannel(ctx, channelID)
}

// InviteMember answers Mutation.inviteMember.
func (*mutationRoot) InviteMember(ctx context.Context, input InvitationInput) (*Channel, error) {
	return inviteMember(ctx, input)
}

// WithdrawInvitation answers Mutation.withdrawInvitation.
func (*mutationRoot) WithdrawInvitation(ctx context.Context, input InvitationInput) (*Channel, error) {
	return withdrawInvitation(ctx, input)
}

// AcceptInvitation answers Mutation.acceptInvitation.
func (*mutationRoot) AcceptInvitation(ctx context.Context, channelID string) (*Channel, error) {
	return acceptInvitation(ctx, channelID)
}

// DeclineInvitation answers Mutation.declineInvitation.
func (*mutationRoot) DeclineInvitation(ctx context.Context, channelID string) (*LeaveChannelPayload, error) {
	return declineInvitation(ctx, channelID)
}

// BanAgent answers Mutation.banAgent.
func (*mutationRoot) BanAgent(ctx context.Context, input RestrictAgentInput) (*RestrictionPayload, error) {
	return banAgent(ctx, input)
}

// UnbanAgent answers Mutation.unbanAgent.
func (*mutationRoot) UnbanAgent(ctx context.Context, input LiftRestrictionInput) (*RestrictionPayload, error) {
	return unbanAgent(ctx, input)
}

// MuteAgent answers Mutation.muteAgent.
func (*mutationRoot) MuteAgent(ctx context.Context, input RestrictAgentInput) (*RestrictionPayload, error) {
	return muteAgent(ctx, input)
}

// UnmuteAgent answers Mutation.unmuteAgent.
func (*mutationRoot) UnmuteAgent(ctx context.Context, input LiftRestrictionInput) (*RestrictionPayload, error) {
	return unmuteAgent(ctx, input)
}

// RemoveAgent answers Mutation.removeAgent.
func (*mutationRoot) RemoveAgent(ctx context.Context, principalID string) (*RemoveAgentPayload, error) {
	return removeAgent(ctx, principalID)
}

// CreateScope answers Mutation.createScope.
func (*mutationRoot) CreateScope(ctx context.Context, input CreateScopeInput) (*Scope, error) {
	return createScope(ctx, input)
}

// UpdateScope answers Mutation.updateScope.
func (*mutationRoot) UpdateScope(ctx context.Context, input UpdateScopeInput) (*Scope, error) {
	return updateScope(ctx, input)
}

// EndScope answers Mutation.endScope.
func (*mutationRoot) EndScope(ctx context.Context, input EndScopeInput) (*Scope, error) {
	return endScope(ctx, input)
}

// PublishMessage answers Mutation.publishMessage.
func (*mutationRoot) PublishMessage(ctx context.Context, input PublishMessageInput) (*PublishMessagePayload, error) {
	return publishMessage(ctx, input)
}

// RetractMessage answers Mutation.retractMessage.
func (*mutationRoot) RetractMessage(ctx context.Context, input RetractMessageInput) (*RetractMessagePayload, error) {
	return retractMessage(ctx, input)
}

// AcknowledgeMessages answers Mutation.acknowledgeMessages.
func (*mutationRoot) AcknowledgeMessages(ctx context.Context, input AcknowledgeMessagesInput) (*Channel, error) {
	return acknowledgeMessages(ctx, input)
}

// Ask answers Mutation.ask.
func (*mutationRoot) Ask(ctx context.Context, input AskInput) (*AskPayload, error) {
	return askAgent(ctx, input)
}

// AskAll answers Mutation.askAll.
func (*mutationRoot) AskAll(ctx context.Context, input AskInput) (*AskAllPayload, error) {
	return askAll(ctx, input)
}

// SendSignal answers Mutation.sendSignal.
func (*mutationRoot) SendSignal(ctx context.Context, input SendSignalInput) (*SendSignalPayload, error) {
	return sendSignal(ctx, input)
}

// SendMessage answers Mutation.sendMessage.
func (*mutationRoot) SendMessage(ctx context.Context, input SendMessageInput) (*SendMessagePayload, error) {
	return sendTaskMessage(ctx, input)
}

// ReportTask answers Mutation.reportTask.
func (*mutationRoot) ReportTask(ctx context.Context, input ReportTaskInput) (*Task, error) {
	return reportTask(ctx, input)
}

// CancelTask answers Mutation.cancelTask.
func (*mutationRoot) CancelTask(ctx context.Context, taskID string) (*Task, error) {
	return cancelTask(ctx, taskID)
}

// DeleteTask answers Mutation.deleteTask.
func (*mutationRoot) DeleteTask(ctx context.Context, taskID string) (*DeleteTaskPayload, error) {
	return deleteTask(ctx, taskID)
}

// Audit answers Query.audit.
func (*queryRoot) Audit(ctx context.Context, first *int, after *Cursor, principal *string, actor *string, since *time.Time, until *time.Time, kinds []AuditKind, channelID *string) (*AuditConnection, error) {
	return auditList(ctx, auditQuery{first, after, principal, actor, since, until, kinds, channelID})
}

// Why answers Query.why.
func (*queryRoot) Why(ctx context.Context, statement StatementRef, first *int, view *ViewInput) (*StatementExplanation, error) {
	return explainStatement(ctx, statement, first, view)
}

// Proposals answers Query.proposals.
func (*queryRoot) Proposals(ctx context.Context, status *ProposalStatus, author *string, first *int, after *string) (*ProposalConnection, error) {
	return readProposals(ctx, status, author, first, after)
}

// Proposal answers Query.proposal.
func (*queryRoot) Proposal(ctx context.Context, id string) (*Proposal, error) {
	return readProposal(ctx, id)
}

// Contradictions answers Query.contradictions.
func (*queryRoot) Contradictions(ctx context.Context, first *int, after *Cursor, view *ViewInput) (*ContradictionConnection, error) {
	return readContradictions(ctx, first, after, view)
}

// Quarantines answers Query.quarantines.
func (*queryRoot) Quarantines(ctx context.Context) ([]Quarantine, error) {
	return readQuarantines(ctx)
}

// Vocabulary answers Query.vocabulary.
func (*queryRoot) Vocabulary(ctx context.Context, view *ViewInput) (*Vocabulary, error) {
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
func (*queryRoot) APIKeys(ctx context.Context, agent *string, includeEnded bool, first *int, after *string) ([]APIKey, error) {
	return readAPIKeys(ctx, agent, includeEnded, first, after)
}

// Stats answers Query.stats.
func (*queryRoot) Stats(ctx context.Context, view *ViewInput) (*Stats, error) {
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
func (*queryRoot) Channels(ctx context.Context, first *int, after *Cursor, visibility *ChannelVisibility, member *string, invited bool, scopeID *string) (*ChannelConnection, error) {
	return readChannels(ctx, first, after, visibility, member, invited, scopeID)
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
func (*queryRoot) Violations(ctx context.Context, first *int, shape *base.Term, view *ViewInput) (*ValidationReport, error) {
	return readViolations(ctx, first, shape, view)
}

// Task answers Query.task.
func (*queryRoot) Task(ctx context.Context, id string) (*Task, error) {
	return readTask(ctx, id)
}

// Tasks answers Query.tasks.
func (*queryRoot) Tasks(ctx context.Context, first *int, after *Cursor, createdByMe bool, handledByMe bool, contextID *string, handler *string, states []TaskState, parentID *string, since *time.Time) (*TaskConnection, error) {
	q := tasks.Query{Created: createdByMe, Handled: handledByMe, Context: deref(contextID), Parent: tasks.TaskID(deref(parentID))}
	return readTasks(ctx, first, after, q, handler, states, since)
}
