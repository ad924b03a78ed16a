package channels

import "koine/kg"

// Classes of channels and messages.
var (
	ClassChannel = vocabTerm("Channel")
	ClassMessage = vocabTerm("Message")
)

// Properties of a channel, in its record.
var (
	propScope       = vocabTerm("channelScope")
	propPolicy      = vocabTerm("channelMemberPolicy")
	propClosed      = vocabTerm("channelClosedAt")
	propCloseReason = vocabTerm("channelCloseReason")
	propExpireAfter = vocabTerm("channelExpireAfter") // in milliseconds
	propKeep        = vocabTerm("channelKeepMessages")
	propAudit       = vocabTerm("channelAudit")

	propName       = vocabTerm("channelName")
	propTopic      = vocabTerm("channelTopic")
	propKind       = vocabTerm("channelKind")
	propVisibility = vocabTerm("channelVisibility")
	propCreated    = vocabTerm("channelCreatedAt")
	propCreator    = vocabTerm("channelCreatedBy")
	propMetadata   = vocabTerm("channelMetadata")
	propVersion    = vocabTerm("channelVersion")
	propDeleted    = vocabTerm("channelDeletedAt")
	propMaxMembers = vocabTerm("channelMaxMembers")

	// The channel's own limits.
	propPerMinute    = vocabTerm("channelMessagesPerMinute")
	propStreams      = vocabTerm("channelStreams")
	propMessageBytes = vocabTerm("channelMessageBytes")

	// The grantee of each right that differs from the default.
	propDiscover = vocabTerm("channelDiscover")
	propJoin     = vocabTerm("channelJoin")
	propRead     = vocabTerm("channelRead")
	propPost     = vocabTerm("channelPost")
	propManage   = vocabTerm("channelManage")

	// The partitions, and the readers of each.
	propLane       = vocabTerm("lane")
	propLaneReader = vocabTerm("laneReader")

	// The role of a member. The assertion is valid from the joining time.
	propOwner     = vocabTerm("channelOwner")
	propModerator = vocabTerm("channelModerator")
	propMember    = vocabTerm("channelMember")
	propObserver  = vocabTerm("channelObserver")

	// Invitations and restrictions, of the channel or, with the subject serverEntity,
	// of the server. The validity of a restriction's assertion is its duration.
	propInvited = vocabTerm("channelInvited")
	propBanned  = vocabTerm("channelBanned")
	propMuted   = vocabTerm("channelMuted")
)

// Properties of a message, in the journal. Its number is kg.Sequence.
var (
	propChannel     = vocabTerm("channel")
	propAuthor      = vocabTerm("author")
	propSent        = vocabTerm("sentAt")
	propParts       = kg.Parts                     // JSON: the parts as published
	propData        = vocabTerm("messageMetadata") // JSON
	propArtifact    = vocabTerm("artifactRef")
	propKey         = vocabTerm("idempotencyKey")
	propOnce        = vocabTerm("idempotency") // key of an author in a channel (onceKey)
	propContent     = vocabTerm("contentHash") // of the request with the key
	propSalt        = vocabTerm("contentSalt") // salt of the content hash in the scope's event
	propInteraction = vocabTerm("messageType")
	propContentType = vocabTerm("contentType")
	propFormat      = vocabTerm("format")
	propTag         = vocabTerm("tag")
	propTo          = vocabTerm("addressedTo") // as given by the author
	propRecipient   = vocabTerm("recipient")   // resolved at publication
	propCorrelation = vocabTerm("correlation") // the answered request
	propExpires     = vocabTerm("expiresAt")   // removed when answered
	propExpired     = vocabTerm("expiredAt")   // replaces expiresAt when the content is removed
	propAnswered    = vocabTerm("answeredBy")  // the first response to a request
	propReplyTo     = vocabTerm("replyTo")
	propThread      = vocabTerm("thread")
	propRetracts    = vocabTerm("retracts")    // the message that this one retracts
	propRetractedBy = vocabTerm("retractedBy") // the message that retracted this one
	propEvicted     = kg.Evicted               // the content was evicted
	propFactCount   = vocabTerm("factCount")   // number of patches; absent for 0
	propProposal    = vocabTerm("proposal")    // the proposal that holds its facts
	propPayload     = vocabTerm("payload")     // the partition with its content
)

var rdfType = kg.IRI(kg.RDFType)

func vocabTerm(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// jsonLiteral returns a JSON value as a literal (RDF 1.2, section 3.3: rdf:JSON).
func jsonLiteral(raw []byte) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }
