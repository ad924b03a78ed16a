// Package kg is the store of koine: a knowledge graph over one append-only log.
//
// A graph is a set of statements, each backed by the assertions of its sources. An update
// changes statements and becomes a commit, numbered by its revision. The log of commits is
// the source of truth; the index, in Badger, is derived from it.
//
//	store, err := kg.Open(dir, kg.Options{})
//	receipt, err := store.Update(ctx, kg.Meta{Principal: ann}, func(tx *kg.Tx) error {
//		return tx.Apply(kg.Patch{Op: kg.Add, Quad: quad})
//	})
//	snapshot, err := store.View(ctx, kg.View{Principal: ann})     // read: Match, Sweep, Count
//	watcher, err := store.Watch(ctx, filter, snapshot.Position()) // then follow the changes
//
// # Promises
//
//   - Revisions are 1, 2, 3 … without gaps. Commit times never decrease.
//   - A commit is durable before a reader or an observer sees it, and visible as a whole.
//   - An error of Update means that nothing was written, except CodeOutcomeUnknown.
//   - A snapshot shows one revision. Watch from its position misses no change and repeats
//     none, across restarts too.
//   - Every scan, watch and update asks Governor.Access. A graph that a principal may not
//     read does not exist for it.
//   - Readers never block the committer: a watcher has no buffer and reads the log.
//   - After a crash or with Options.Rebuild, the log makes the same index again.
//
// # How a commit is made
//
//  1. Update asks Governor.Admit. With a Verifier, the update is run and judged on the
//     caller's goroutine against a snapshot.
//  2. The committer, one goroutine, takes the queued updates as a group and runs each one
//     over an overlay. An update whose judgement was overtaken is judged again.
//  3. The group is appended to the log with one fsync. If nothing of it is in the log
//     afterwards, it is discarded and its callers are told. After any other failure the
//     store becomes read-only.
//  4. Observers and Governor.OnSystemChange are called, the keys are merged into memory,
//     and the head moves. The memory reaches Badger later, in bulk.
//  5. The callers are answered, and the watchers that match are woken.
//
// Begin with Store and its methods, then Tx, Snapshot and Watcher. Governor has all that
// decides about reads and updates, Maintenance what an operator does. Package base has the
// types of the data model. docs/architecture.md walks an update through the files. Package
// kgtest is the conformance suite.
package kg
