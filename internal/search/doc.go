// Package search finds entities and messages by the words of their texts: the strings among
// the literals of statements, and the text of messages.
//
// A Service keeps a textindex.Index behind the log, in a directory of its own. The directory
// may be deleted: the index is built anew from the store, beside reads. Revision tells how
// far it is, and WaitFor waits for it.
//
// Search answers under a snapshot of the caller. A hit is there if the snapshot shows one of
// its statements: access, expiry, quarantine and the other conditions of a view hold as in
// any read.
package search
