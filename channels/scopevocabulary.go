package channels

// The classes of scopes and of their events.
var (
	ClassScope = own("Scope")
	ClassEvent = own("ScopeEvent")
)

// The properties of a scope, in its record.
var (
	propScopeTitle       = own("scopeTitle")
	propScopeStatus      = own("scopeStatus")
	propScopeParent      = own("scopeParent")
	propScopeCoordinator = own("scopeCoordinator")
	propScopeEverybody   = own("scopeEverybody")
	propScopeAgent       = own("scopeAgent")
	propScopeRole        = own("scopeRole")
	propScopeCreated     = own("scopeCreatedAt")
	propScopeCreator     = own("scopeCreatedBy")
	propScopeEnded       = own("scopeEndedAt")
	propScopeReason      = own("scopeEndReason")
	propScopeVersion     = own("scopeVersion")
)

// The properties of an event, in the scope's events. Its number is kg.Sequence.
var (
	propEventType     = own("eventType")
	propEventActor    = own("eventActor")
	propEventAt       = own("eventAt")
	propEventData     = own("eventData") // JSON
	propEventPrevious = own("eventPreviousHash")
	propEventHash     = own("eventHash")
)
