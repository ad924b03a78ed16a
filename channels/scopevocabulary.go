package channels

// Classes of scopes and of their events.
var (
	ClassScope = vocabTerm("Scope")
	ClassEvent = vocabTerm("ScopeEvent")
)

// Properties of a scope, in its record.
var (
	propScopeTitle       = vocabTerm("scopeTitle")
	propScopeStatus      = vocabTerm("scopeStatus")
	propScopeParent      = vocabTerm("scopeParent")
	propScopeCoordinator = vocabTerm("scopeCoordinator")
	propScopeEverybody   = vocabTerm("scopeEverybody")
	propScopeAgent       = vocabTerm("scopeAgent")
	propScopeRole        = vocabTerm("scopeRole")
	propScopeCreated     = vocabTerm("scopeCreatedAt")
	propScopeCreator     = vocabTerm("scopeCreatedBy")
	propScopeEnded       = vocabTerm("scopeEndedAt")
	propScopeReason      = vocabTerm("scopeEndReason")
	propScopeVersion     = vocabTerm("scopeVersion")
)

// Properties of an event, in the scope's events. Its number is kg.Sequence.
var (
	propEventType     = vocabTerm("eventType")
	propEventActor    = vocabTerm("eventActor")
	propEventAt       = vocabTerm("eventAt")
	propEventData     = vocabTerm("eventData") // JSON
	propEventPrevious = vocabTerm("eventPreviousHash")
	propEventHash     = vocabTerm("eventHash")
)
