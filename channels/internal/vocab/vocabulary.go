// Package vocab has the classes and properties as which channels, scopes, messages,
// receipts and counts are stored, all of them in kg.OwnVocabulary. Their names are those of
// the stored graphs and never change.
package vocab

import (
	"strconv"
	"strings"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Classes of channels and messages.
var (
	ClassChannel = systemgraph.Property("Channel")
	ClassMessage = systemgraph.Property("Message")
)

// Properties of a channel, in its record.
var (
	Scope       = systemgraph.Property("channelScope")
	Policy      = systemgraph.Property("channelMemberPolicy")
	Closed      = systemgraph.Property("channelClosedAt")
	CloseReason = systemgraph.Property("channelCloseReason")
	ExpireAfter = systemgraph.Property("channelExpireAfter") // in milliseconds
	Keep        = systemgraph.Property("channelKeepMessages")
	Audit       = systemgraph.Property("channelAudit")

	Name       = systemgraph.Property("channelName")
	Topic      = systemgraph.Property("channelTopic")
	Kind       = systemgraph.Property("channelKind")
	Visibility = systemgraph.Property("channelVisibility")
	Created    = systemgraph.Property("channelCreatedAt")
	Creator    = systemgraph.Property("channelCreatedBy")
	Metadata   = systemgraph.Property("channelMetadata")
	Version    = systemgraph.Property("channelVersion")
	Deleted    = systemgraph.Property("channelDeletedAt")
	MaxMembers = systemgraph.Property("channelMaxMembers")

	// The channel's own limits.
	PerMinute    = systemgraph.Property("channelMessagesPerMinute")
	Streams      = systemgraph.Property("channelStreams")
	MessageBytes = systemgraph.Property("channelMessageBytes")

	// The grantee of each right that differs from the default.
	Discover = systemgraph.Property("channelDiscover")
	Join     = systemgraph.Property("channelJoin")
	Read     = systemgraph.Property("channelRead")
	Post     = systemgraph.Property("channelPost")
	Manage   = systemgraph.Property("channelManage")

	// FormerReader is an agent that could read the channel when it was deleted. It keeps the
	// audit copies.
	FormerReader = systemgraph.Property("channelFormerReader")

	// Overseer is an agent that reads the channel as an overseer. The assertion is valid from
	// its first read.
	Overseer = systemgraph.Property("channelOverseer")

	// The partitions, and the readers of each.
	Lane       = systemgraph.Property("lane")
	LaneReader = systemgraph.Property("laneReader")

	// The role of a member. The assertion is valid from the joining time.
	Owner     = systemgraph.Property("channelOwner")
	Moderator = systemgraph.Property("channelModerator")
	Member    = systemgraph.Property("channelMember")
	Observer  = systemgraph.Property("channelObserver")

	// Invitations and restrictions, of the channel or, with the subject serverEntity,
	// of the server. The validity of a restriction's assertion is its duration.
	Invited = systemgraph.Property("channelInvited")
	Banned  = systemgraph.Property("channelBanned")
	Muted   = systemgraph.Property("channelMuted")
)

// Properties of a message, in the journal. Its number is kg.Sequence.
var (
	Channel     = systemgraph.Property("channel")
	Author      = systemgraph.Property("author")
	Sent        = systemgraph.Property("sentAt")
	Parts       = kg.Parts                                // JSON: the parts as published
	Data        = systemgraph.Property("messageMetadata") // JSON
	Artifact    = systemgraph.Property("artifactRef")
	Key         = systemgraph.Property("idempotencyKey")
	Once        = systemgraph.Property("idempotency") // key of an author in a channel (onceKey)
	Content     = systemgraph.Property("contentHash") // of the request with the key
	Salt        = systemgraph.Property("contentSalt") // salt of the content hash in the scope's event
	Interaction = systemgraph.Property("messageType")
	ContentType = systemgraph.Property("contentType")
	Format      = systemgraph.Property("format")
	Tag         = systemgraph.Property("tag")
	To          = systemgraph.Property("addressedTo") // as given by the author
	Recipient   = systemgraph.Property("recipient")   // resolved at publication
	Correlation = systemgraph.Property("correlation") // the answered request
	Expires     = systemgraph.Property("expiresAt")   // removed when answered
	Expired     = systemgraph.Property("expiredAt")   // replaces expiresAt when the content is removed
	Answered    = systemgraph.Property("answeredBy")  // the first response to a request
	ReplyTo     = systemgraph.Property("replyTo")
	Thread      = systemgraph.Property("thread")
	Retracts    = systemgraph.Property("retracts")    // the message that this one retracts
	RetractedBy = systemgraph.Property("retractedBy") // the message that retracted this one
	Evicted     = kg.Evicted                          // the content was evicted
	FactCount   = systemgraph.Property("factCount")   // number of patches; absent for 0
	Proposal    = systemgraph.Property("proposal")    // the proposal that holds its facts
	Payload     = systemgraph.Property("payload")     // the partition with its content
)

// Properties of a message that was held or refused before it was published, in
// VerdictsGraph, beside Once, Content and Proposal.
var (
	Verdict = systemgraph.Property("verdict")       // "held" or "rejected"
	Reason  = systemgraph.Property("verdictReason") // JSON: reason and details
	Held    = systemgraph.Property("heldMessage")   // JSON: the publication, until the review ends
)

var Type = kg.IRI(kg.RDFType)

// JSON returns a JSON value as a literal (RDF 1.2, section 3.3: rdf:JSON).
func JSON[T ~[]byte | ~string](raw T) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }

// Storage of receipts, in ReceiptsGraph: for each agent the sequences up to which all
// messages for it were delivered and read, and in addition receipts of individual
// messages. A message that expires always gets individual receipts: reading on past it
// after its expiry must not mark it as read. Pending messages have no statements.
var (
	DeliveredUpTo = systemgraph.Property("deliveredUpTo")
	ReadUpTo      = systemgraph.Property("readUpTo")
	DeliveredTo   = systemgraph.Property("deliveredTo")
	ReadBy        = systemgraph.Property("readBy")

	// Gone marks the recipients of a request that were removed from the server
	// (RemoveAgent) while others could still answer it.
	Gone = systemgraph.Property("recipientGone")
)

// Classes of scopes and of their events.
var (
	ClassScope = systemgraph.Property("Scope")
	ClassEvent = systemgraph.Property("ScopeEvent")
	// Grants and assignments are entities of their own, in the scope's record.
	ClassGrant      = systemgraph.Property("ScopeGrant")
	ClassAssignment = systemgraph.Property("ScopeAssignment")
)

// Properties of a scope, in its record.
var (
	ScopeTitle       = systemgraph.Property("scopeTitle")
	ScopeStatus      = systemgraph.Property("scopeStatus")
	ScopeParent      = systemgraph.Property("scopeParent")
	ScopeCoordinator = systemgraph.Property("scopeCoordinator")
	ScopeEverybody   = systemgraph.Property("scopeEverybody")
	ScopeAgent       = systemgraph.Property("scopeAgent")
	ScopeRole        = systemgraph.Property("scopeRole")
	ScopeCreated     = systemgraph.Property("scopeCreatedAt")
	ScopeCreator     = systemgraph.Property("scopeCreatedBy")
	ScopeEnded       = systemgraph.Property("scopeEndedAt")
	ScopeReason      = systemgraph.Property("scopeEndReason")
	ScopeVersion     = systemgraph.Property("scopeVersion")
	ScopeExternal    = systemgraph.Property("scopeExternalId")
)

// Properties of a grant and of an assignment, in the scope's record.
var (
	GrantAgent   = systemgraph.Property("grantAgent")
	GrantRole    = systemgraph.Property("grantRole")
	GrantLevel   = systemgraph.Property("grantLevel")
	GrantReason  = systemgraph.Property("grantReason")
	GrantBy      = systemgraph.Property("grantedBy")
	GrantAt      = systemgraph.Property("grantedAt")
	GrantExpires = systemgraph.Property("grantExpiresAt")

	AssignedAgent = systemgraph.Property("assignedAgent")
	AssignedRole  = systemgraph.Property("assignedRole")
	AssignedBy    = systemgraph.Property("assignedBy")
	AssignedAt    = systemgraph.Property("assignedAt")
)

// Properties of an event, in the scope's events. Its number is kg.Sequence.
var (
	EventType     = systemgraph.Property("eventType")
	EventActor    = systemgraph.Property("eventActor")
	EventAt       = systemgraph.Property("eventAt")
	EventData     = systemgraph.Property("eventData") // JSON
	EventPrevious = systemgraph.Property("eventPreviousHash")
	EventHash     = systemgraph.Property("eventHash")
	EventTrace    = systemgraph.Property("eventTraceId")
	EventParent   = systemgraph.Property("eventParent")
)

// Storage of counts, in ReceiptsGraph: for the channel the sequence up to which
// messages are counted; for each of its days, an entity, the tallies; and for each
// tally its author and the number of messages.
var (
	CountedUpTo = systemgraph.Property("countedUpTo")
	Tally       = systemgraph.Property("tally")
	TallyAuthor = systemgraph.Property("tallyAuthor")
	TallyCount  = systemgraph.Property("tallyCount")
)

// IDOf returns the id after the prefix of a term, or "" for another term.
func IDOf[ID ~string](t kg.Term, prefix string) ID {
	id, ok := strings.CutPrefix(t.Value(), prefix)
	if !ok {
		return ""
	}
	return ID(id)
}

// IntegerOf returns the value of an integer literal.
func IntegerOf(t kg.Term) int64 {
	n, _ := strconv.ParseInt(t.Value(), 10, 64)
	return n
}

// Statement is a property and its object, without the subject.
type Statement struct{ Property, Object kg.Term }

// NewStatement returns the statement of a property with an object.
func NewStatement(property, object kg.Term) Statement { return Statement{property, object} }
