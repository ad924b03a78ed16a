// Package index holds the layers of the index: Dictionary numbers terms, Overlay keeps
// the changes of unfinished groups above a snapshot of Badger, Catalogue counts
// statements by predicate, class and source, Generations tells which content of a graph
// counts at a revision, and IndexWriter turns the changes of a commit into keys.
//
// The keys that IndexWriter writes depend only on the changes and the dictionary. A live
// group, a replay and a rebuild therefore write the same keys for the same log.
package index
