// Package presence tracks whether agents are online, idle, busy or offline.
//
// An agent is present while it has an open stream (Tracker.Connect) and for some time
// after each heartbeat (Tracker.Heartbeat). It declares itself busy or idle, or becomes
// idle when it has written nothing for some time (Tracker.NoteActivity). Tracker.Get
// returns the current state from memory.
//
// Lasting changes are stored in the graph Graph, which every authenticated caller can
// read: the state of each agent and its start. The number of commits is bounded
// regardless of how agents come and go: changes are batched into at most one commit per
// Options.WriteInterval, changes that last less than Options.Settle are not stored, and
// each agent is written at most once per Options.AgentWriteInterval. The graph is a
// journal (kg.JournalGraphPrefix), so these commits do not delay other updates.
//
// Only agents with a record (package agents) are stored. The first heartbeat creates
// the record. A server whose callers have no records and send no heartbeats therefore
// writes nothing.
//
// After a restart, agents that were present have the validity of one heartbeat to
// return.
package presence
