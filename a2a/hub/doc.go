// Package hub is where agents are reached that have no address of their own: each
// registered agent has one here, under /agents/<id>. Whoever asks for something speaks
// base A2A to /agents/<id>/a2a, and finds the agent's card beside it; the agent takes
// its messages out of /agents/<id>/mailbox and reports there what becomes of them, in
// the form of A2A 1.0. It registers with PUT /agents/<id>.
//
// What a task is, and who may see it, is package tasks'; what an agent says of itself is
// package agents'.
package hub
