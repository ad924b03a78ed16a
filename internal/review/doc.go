// Package review keeps updates that a rule holds, until others have decided
// about them.
//
// A held update becomes a Proposal: an entity in a graph of its own
// (kg.ProposalGraphPrefix), written in the commit that answers its author. The
// store hands it over (kg.Holder), so no way of writing passes it by. What it
// would add stands meanwhile in a second graph (kg.PendingGraphPrefix), which
// the author and the reviewers may read.
//
// # Promises
//
//   - A proposal ends once: applied, rejected, withdrawn, expired or conflicted.
//     That is decided inside a commit, so two reviewers at once apply it once.
//   - Nobody approves what is their own: the principal and the agent it acts for
//     are compared on both sides. Approvals are counted by principal.
//   - The last approval applies the patches in the commit that says so, as the
//     author's and with the rights that the author has then (Options.Standing),
//     judged against the graph of then. Where it has none, the proposal is
//     conflicted. The rules that held it do not hold it again; everything else
//     counts.
//   - Whether it has expired is judged whenever it is looked at; the commits of
//     other proposals write it down.
//
// # What is stored
//
// The subject of a proposal is the IRI of its graph. Properties are in
// kg.OwnVocabulary: see vocabulary.go. The patches are JSON in pieces.
package review
