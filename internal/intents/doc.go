// Package intents keeps the parts of intents beyond their scope (channels/scope): a description,
// constraints, a state that agents change together, a status of six, and the events of all
// that happens to them; their leases, tasks, access requests and places in portfolios.
//
// Begin with Service and Intent. The parts of the service are Leases, Tasks, Requests and
// Portfolios. An intent has the id of its scope, and every scope that is no task is an
// intent: one that was made as a scope alone has no description and an empty state.
//
// # Rights
//
// An agent with the level Read of the scope sees the intent and its events. Write changes its state
// and its status, so agents that work on an intent complete it. Admin (the creator, the
// coordinator and those with such a grant) manages access and assignments. For all others the
// intent does not exist.
//
// # Storage
//
// The records stand in part graphs of the scope (scope.ID.PartGraph), which are read by who
// reads the scope, so access is decided inside the scan. Portfolios stand in a graph that
// every authenticated caller may read; which intents are in one stands in the intents. A
// change and the event that it appends to the log of the intent are one commit
// (channels.Scopes.Change).
package intents
