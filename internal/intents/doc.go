// Package intents keeps what intents have beyond their scope (channels/scope): their leases,
// tasks, access requests and places in portfolios.
//
// Begin with Service. Its parts are Leases, Tasks, Requests and Portfolios. An intent has the
// id of its scope.
//
// # Storage
//
// The records stand in part graphs of the scope (scope.ID.PartGraph), which are read by who
// reads the scope, so access is decided inside the scan. Portfolios stand in a graph that
// every authenticated caller may read; which intents are in one stands in the intents. A
// change and the event that it appends to the log of the intent are one commit
// (channels.Scopes.Change).
package intents
