package graph

import (
	"koine/graph/internal/knowledge"
	"koine/graph/internal/scalar"
)

// Tokens of the schema.
type (
	// Cursor marks a place in a connection.
	Cursor = scalar.Cursor
	// Position is a place in the log.
	Position = scalar.Position
)

// Stream is an established subscription.
type Stream = knowledge.Stream

// The connections of the domains' lists, and their edges.
type (
	AgentConnection              = listPage[Agent]
	AgentEdge                    = listEdge[Agent]
	APIKeyConnection             = listPage[APIKey]
	APIKeyEdge                   = listEdge[APIKey]
	GraphConnection              = listPage[Graph]
	GraphEdge                    = listEdge[Graph]
	AuditConnection              = listPage[AuditEntry]
	AuditEdge                    = listEdge[AuditEntry]
	ProposalConnection           = listPage[Proposal]
	ProposalEdge                 = listEdge[Proposal]
	QuarantineConnection         = listPage[Quarantine]
	QuarantineEdge               = listEdge[Quarantine]
	TermCountConnection          = listPage[knowledge.TermCount]
	TermCountEdge                = listEdge[knowledge.TermCount]
	GraphCountConnection         = listPage[GraphCount]
	GraphCountEdge               = listEdge[GraphCount]
	ChannelConnection            = listPage[Channel]
	ChannelEdge                  = listEdge[Channel]
	IntentConnection             = listPage[Intent]
	IntentEdge                   = listEdge[Intent]
	LeaseConnection              = listPage[Lease]
	LeaseEdge                    = listEdge[Lease]
	AccessRequestConnection      = listPage[AccessRequest]
	AccessRequestEdge            = listEdge[AccessRequest]
	PortfolioConnection          = listPage[Portfolio]
	PortfolioEdge                = listEdge[Portfolio]
	ScopeConnection              = listPage[Scope]
	ScopeEdge                    = listEdge[Scope]
	ScopeEventConnection         = listPage[ScopeEvent]
	ScopeEventEdge               = listEdge[ScopeEvent]
	ChannelMemberConnection      = listPage[ChannelMember]
	ChannelMemberEdge            = listEdge[ChannelMember]
	ChannelInvitationConnection  = listPage[ChannelInvitation]
	ChannelInvitationEdge        = listEdge[ChannelInvitation]
	ChannelRestrictionConnection = listPage[ChannelRestriction]
	ChannelRestrictionEdge       = listEdge[ChannelRestriction]
	MessageConnection            = listPage[Message]
	MessageEdge                  = listEdge[Message]
	MessageReceiptConnection     = listPage[MessageReceipt]
	MessageReceiptEdge           = listEdge[MessageReceipt]
	TaskConnection               = listPage[Task]
	TaskEdge                     = listEdge[Task]
	TaskMessageConnection        = listPage[TaskMessage]
	TaskMessageEdge              = listEdge[TaskMessage]
	TaskCommitConnection         = listPage[TaskCommit]
	TaskCommitEdge               = listEdge[TaskCommit]
	ContradictionEdge            = listEdge[Contradiction]
)
