package channels

// ClassScope is the class of scopes.
var ClassScope = own("Scope")

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
