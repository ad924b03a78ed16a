// Package mailhook delivers the letters of mailboxes to web hooks: a registered agent
// may configure a hook (Service.Set) instead of keeping a mailbox stream open. A letter
// stays in the mailbox until its agent acknowledges it, regardless of the deliveries.
// The agent responds by calls of its own.
//
// # Storage
//
// Each agent with a hook has one record in a journal (Graph) that only administrators
// can read. The URL and the credentials are sealed with the store's own secret
// (kg.Store.Seal): no statement, export or backup contains them in the clear, and a
// restored store cannot read them, so that only the server on which a hook was
// configured calls it. The record is removed in the commit that deregisters the agent.
//
// # Guarantees
//
//   - Each letter that waits when the hook is set, or arrives later, is delivered at
//     least once while it is in the mailbox: any response but 2xx is retried.
//   - Letters are delivered one by one, oldest first. After MaxTries failures of a
//     letter, letters of other tasks pass it; those of its own task stay behind it.
//   - Delivery resumes after a restart. Progress is stored at most once per
//     Options.FlushEvery, and when the server stops: after a crash, the deliveries
//     since then are repeated.
//   - No call starts after the commit that removes the hook or deregisters the agent.
//   - Hooks do not delay each other, except for the limit of Options.MaxConcurrent
//     calls.
package mailhook
