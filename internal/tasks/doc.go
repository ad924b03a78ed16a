// Package tasks manages the work that agents request from each other. A task has a
// creator, who sends messages, and a handler, who reports status and submits artifacts.
// Tasks, messages and artifacts are entities of the graph; this package adds the rules
// by which they change and who may see them.
//
// Begin with Service: Send creates a task or continues one, Report changes it, Get and
// List read, Follow streams events, Mail and OpenFeed deliver to agents.
//
// # Storage
//
// All tasks of one creator with one handler are in one graph (graphOf), a journal
// (kg.JournalGraphPrefix). Its name contains both agents, so access is decided from the
// name alone (Guard): only the two, and administrators, read it. The package keeps no
// table of tasks in memory. Properties are in kg.OwnVocabulary: see vocabulary.go.
//
// # Events
//
// Events are not stored. Each commit that changes a task increments its version, and a
// Stream derives the events from the changes of the commit. So events are in log order,
// and a stream can resume after any of them, also after a restart.
//
// # Promises
//
//   - A task that has ended does not change any more; it can only be deleted.
//   - Acknowledged data survives a restart, and parts are kept exactly as sent.
//   - A stream yields each event once, in order, and ends after the last.
//   - A task that the caller may not see is not found.
package tasks
