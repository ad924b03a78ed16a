package intents

// Types of the events of an intent and its access. Those of leases, tasks and access requests
// stand beside these.
const (
	EventCreated       = "intent_created"
	EventStatePatched  = "state_patched"
	EventStatusChanged = "status_changed"
	EventAssigned      = "agent_assigned"
	EventUnassigned    = "agent_unassigned"
	EventGranted       = "access_granted"
	EventRevoked       = "access_revoked"
)
