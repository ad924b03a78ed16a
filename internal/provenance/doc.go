// Package provenance explains why a statement is in the graph, finds contradictions, and
// undoes wrong data: one commit, or everything that an agent asserted.
//
// The package knows no protocol. It reads with the rights of its caller: a commit's
// justification or one side of a contradiction is absent if the caller may not see it.
// It writes through kg.Store.Update like any other client, under the caller's rights
// and the operator's rules.
//
// Why explains a statement, Contradictions searches a snapshot, Resolve and Revert
// write, and Quarantines holds the agents whose assertions do not count.
package provenance
