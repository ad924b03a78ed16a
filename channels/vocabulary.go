package channels

import "koine/kg"

// The classes of channels and messages.
var (
	ClassChannel = vocabTerm("Channel")
	ClassMessage = vocabTerm("Message")
)

// The properties of a channel, in its record.
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

	// What the channel bounds of its own.
	propPerMinute    = vocabTerm("channelMessagesPerMinute")
	propStreams      = vocabTerm("channelStreams")
	propMessageBytes = vocabTerm("channelMessageBytes")

	// Who has a right, where it is not as for all channels of the kind.
	propDiscover = vocabTerm("channelDiscover")
	propJoin     = vocabTerm("channelJoin")
	propRead     = vocabTerm("channelRead")
	propPost     = vocabTerm("channelPost")
	propManage   = vocabTerm("channelManage")

	// The graphs for messages to some of the readers, and who reads each.
	propLane       = vocabTerm("lane")
	propLaneReader = vocabTerm("laneReader")

	// What a member is. The assertion is valid from when it joined.
	propOwner     = vocabTerm("channelOwner")
	propModerator = vocabTerm("channelModerator")
	propMember    = vocabTerm("channelMember")
	propObserver  = vocabTerm("channelObserver")

	// Who is to come, and who is kept out, in the channel or, said of serverEntity,
	// in all of them. A bar is valid as long as it stands.
	propInvited = vocabTerm("channelInvited")
	propBanned  = vocabTerm("channelBanned")
	propMuted   = vocabTerm("channelMuted")
)

// The properties of a message, in the journal. Its number is kg.Sequence.
var (
	propChannel     = vocabTerm("channel")
	propAuthor      = vocabTerm("author")
	propSent        = vocabTerm("sentAt")
	propParts       = kg.Parts                     // JSON: the parts as they were given
	propData        = vocabTerm("messageMetadata") // JSON
	propArtifact    = vocabTerm("artifactRef")
	propKey         = vocabTerm("idempotencyKey")
	propOnce        = vocabTerm("idempotency") // which message a key of an author's made
	propContent     = vocabTerm("contentHash") // of what the key was used for
	propSalt        = vocabTerm("contentSalt") // that is in the hash of the scope's event
	propInteraction = vocabTerm("messageType")
	propContentType = vocabTerm("contentType")
	propFormat      = vocabTerm("format")
	propTag         = vocabTerm("tag")
	propTo          = vocabTerm("addressedTo") // as the author said it
	propRecipient   = vocabTerm("recipient")   // whom that was when it was published
	propCorrelation = vocabTerm("correlation") // the request that is answered
	propExpires     = vocabTerm("expiresAt")   // until it is answered
	propExpired     = vocabTerm("expiredAt")   // in its place, once the content is gone
	propAnswered    = vocabTerm("answeredBy")  // the first response to a request
	propReplyTo     = vocabTerm("replyTo")
	propThread      = vocabTerm("thread")
	propRetracts    = vocabTerm("retracts")    // the message that this one takes back
	propRetractedBy = vocabTerm("retractedBy") // the message that took this one back
	propEvicted     = kg.Evicted               // its content is no longer kept
	propFactCount   = vocabTerm("factCount")   // how many patches came with it; absent for none
	propProposal    = vocabTerm("proposal")    // that its facts became
	propPayload     = vocabTerm("payload")     // the graph with what only some may read of it
)

var rdfType = kg.IRI(kg.RDFType)

func vocabTerm(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// jsonLiteral is a JSON value as a literal (RDF 1.2, section 3.3: rdf:JSON).
func jsonLiteral(raw []byte) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }
