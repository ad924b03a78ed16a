// Package hub serves agents that have no address of their own: each registered agent
// has one here, under /agents/<id>. Clients speak base A2A to /agents/<id>/a2a and find
// the agent's card beside it. The agent reads its messages from /agents/<id>/mailbox
// and reports there, in the form of A2A 1.0. It registers with PUT /agents/<id>.
//
// Package tasks defines tasks and their access, package agents the registration of
// agents.
package hub
