// Package proposals keeps updates that a rule holds for review, until reviewers have
// decided.
//
// A held update becomes a Proposal: an entity in a graph of its own
// (kg.ProposalGraphPrefix), written in the commit that answers its author. The store
// calls Hold (kg.Holder), so every way of writing is covered. The statements that it
// would add are in a second graph until then (kg.PendingGraphPrefix), which the author
// and the reviewers may read.
//
// # Promises
//
//   - A proposal ends once: applied, rejected, withdrawn, expired or conflicted.
//     That is decided inside a commit, so two concurrent reviewers apply it once.
//   - Nobody approves their own proposal: the principal and the agent it acts for
//     are compared on both sides. Approvals are counted by principal.
//   - The last approval applies the patches in the same commit, as the author and
//     with the author's current rights (Options.CurrentRights), judged against the
//     current graph. If the rights are gone, the proposal is conflicted. The rules
//     that held it do not hold it again; all other rules apply.
//   - Expiry is computed on every read; the commits of other proposals record it.
//
// # Storage
//
// The subject of a proposal is the IRI of its graph. Properties are in
// kg.OwnVocabulary: see vocabulary.go. The patches are JSON in pieces.
package proposals
