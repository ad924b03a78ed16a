// Package tasks keeps the work that agents ask of each other: a task has a
// creator, who sends messages, and a handler, who reports what becomes of it and
// hands over artifacts. Tasks, their messages and their artifacts are entities of
// the graph like everything else; what this package adds are the rules by which
// they change, and who may see them.
//
// # What is stored
//
// All tasks of one creator with one handler are in one graph (graphOf), a journal
// (kg.JournalGraphPrefix). Its name says whose they are, so that who may read it is
// decided from the name alone (Guard): the two, administrators, and nobody else.
// There is no table of tasks in memory. Properties are in kg.OwnVocabulary: see
// vocabulary.go.
//
// # Events
//
// What happens to a task is not stored beside it: each commit that changes a task
// moves its version on, and a Stream makes the events of what the commit changed.
// So they are in the order of the log, and a stream goes on behind any of them,
// also after a restart.
//
// # Promises
//
//   - A task that has ended does not change any more, but that it is deleted.
//   - What was acknowledged is in the task after any restart, parts exactly as
//     they were sent.
//   - A stream tells each event once, in order, and ends behind the last.
//   - What one may not see is not found.
package tasks
