// Package courier carries the letters of mailboxes to web hooks: an agent that has
// registered may say where it is to be called (Service.Set), instead of keeping a
// mailbox open. A letter is there until its agent has acknowledged it, whatever becomes
// of the calls: what the agent has to say it says by calls of its own.
//
// # What is stored
//
// One record for each agent with a hook, in a journal (Graph) that nobody but
// administrators reads. Where the hook is and what shows the server to it are sealed
// under the store's own secret (kg.Store.Seal): no statement, export or backup has them
// in the clear, and in a restored store they are lost, so that only the server that was
// told of a hook calls it. The record goes in the commit by which its agent deregisters.
//
// # Promises
//
//   - Each letter that waits when the hook is set, or comes later, is carried at least
//     once, as long as it is in the mailbox: any answer but 2xx is tried again.
//   - Letters are carried one after the other, the oldest first. One that failed MaxTries
//     times lets those of other tasks pass; those of its own task stay behind it.
//   - It goes on after a restart. How far it came is written down at most once in
//     Options.FlushEvery, and when the server ends: after a crash what was carried since
//     is carried again.
//   - No call begins after the commit that takes the hook away, or deregisters the agent.
//   - No hook waits for another one but for its place among Options.MaxSending.
package courier
