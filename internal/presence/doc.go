// Package presence knows which agents are there at the moment: online, idle, busy
// or offline.
//
// An agent is there while it has a stream open (Tracker.Connected), and for a while
// after each heartbeat (Tracker.Heartbeat). It says itself that it is busy or idle,
// or becomes idle when it has written nothing for a time (Tracker.Acted). What holds
// is known at once (Tracker.Of), from memory.
//
// What lasts is written down behind it, in the graph Graph, which everybody who is
// let in may read: the state of an agent and since when, and nothing but changes of
// the state. Bounds keep that cheap, however agents come and go: all changes of a
// moment are one commit, of which there is at most one in Options.Pause; what is over
// within Options.Settle is not written; and one agent is written at most once in
// Options.Stay. The graph is a journal (kg.JournalGraphPrefix), so these commits hold
// nobody up.
//
// Only agents with a record (package agents) are written down. The first heartbeat
// makes one. So a server whose callers are just names, and none of which ever sent a
// heartbeat, writes nothing.
//
// After a stop or a kill those who were there when it happened have as long to come
// back as a heartbeat holds.
package presence
