package channels

import "koine/kg"

// The classes of channels and messages.
var (
	ClassChannel = own("Channel")
	ClassMessage = own("Message")
)

// The properties of a channel, in its record.
var (
	propScope       = own("channelScope")
	propPolicy      = own("channelMemberPolicy")
	propClosed      = own("channelClosedAt")
	propCloseReason = own("channelCloseReason")
	propExpireAfter = own("channelExpireAfter") // in milliseconds
	propKeep        = own("channelKeepMessages")
	propAudit       = own("channelAudit")

	propName       = own("channelName")
	propTopic      = own("channelTopic")
	propKind       = own("channelKind")
	propVisibility = own("channelVisibility")
	propCreated    = own("channelCreatedAt")
	propCreator    = own("channelCreatedBy")
	propMetadata   = own("channelMetadata")
	propVersion    = own("channelVersion")
	propDeleted    = own("channelDeletedAt")
	propMaxMembers = own("channelMaxMembers")

	// What the channel bounds of its own.
	propPerMinute    = own("channelMessagesPerMinute")
	propStreams      = own("channelStreams")
	propMessageBytes = own("channelMessageBytes")

	// Who has a right, where it is not as for all channels of the kind.
	propDiscover = own("channelDiscover")
	propJoin     = own("channelJoin")
	propRead     = own("channelRead")
	propPost     = own("channelPost")
	propManage   = own("channelManage")

	// The graphs for messages to some of the readers, and who reads each.
	propLane       = own("lane")
	propLaneReader = own("laneReader")

	// What a member is. The assertion is valid from when it joined.
	propOwner     = own("channelOwner")
	propModerator = own("channelModerator")
	propMember    = own("channelMember")
	propObserver  = own("channelObserver")

	// Who is to come, and who is kept out, in the channel or, said of serverEntity,
	// in all of them. A bar is valid as long as it stands.
	propInvited = own("channelInvited")
	propBanned  = own("channelBanned")
	propMuted   = own("channelMuted")
)

// The properties of a message, in the journal. Its number is kg.Sequence.
var (
	propChannel     = own("channel")
	propAuthor      = own("author")
	propSent        = own("sentAt")
	propParts       = kg.Parts               // JSON: the parts as they were given
	propData        = own("messageMetadata") // JSON
	propArtifact    = own("artifactRef")
	propKey         = own("idempotencyKey")
	propOnce        = own("idempotency") // which message a key of an author's made
	propContent     = own("contentHash") // of what the key was used for
	propSalt        = own("contentSalt") // that is in the hash of the scope's event
	propInteraction = own("messageType")
	propContentType = own("contentType")
	propFormat      = own("format")
	propTag         = own("tag")
	propTo          = own("addressedTo") // as the author said it
	propRecipient   = own("recipient")   // whom that was when it was published
	propCorrelation = own("correlation") // the request that is answered
	propExpires     = own("expiresAt")   // until it is answered
	propExpired     = own("expiredAt")   // in its place, once the content is gone
	propAnswered    = own("answeredBy")  // the first response to a request
	propReplyTo     = own("replyTo")
	propThread      = own("thread")
	propRetracts    = own("retracts")    // the message that this one takes back
	propRetractedBy = own("retractedBy") // the message that took this one back
	propEvicted     = kg.Evicted         // its content is no longer kept
	propFactCount   = own("factCount")   // how many patches came with it; absent for none
	propProposal    = own("proposal")    // that its facts became
	propPayload     = own("payload")     // the graph with what only some may read of it
)

var rdfType = kg.IRI(kg.RDFType)

func own(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// jsonText is a JSON value as a literal (RDF 1.2, section 3.3: rdf:JSON).
func jsonText(raw []byte) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }
