// Package channels implements conversations: channels with members, and messages in the
// total order in which they were published. Channels and messages are entities of the
// graph; this package enforces how they change and decides access to them.
//
// Begin with Service: Create, Publish, History, Stream. Its parts are Service.Members (who
// is in a channel), Service.Scopes and Service.Receipts.
//
// # Rooms
//
// The data has packages of its own, each of which knows only the ones before it: scope,
// channel and message. Package receipts keeps receipts, and package actions lists the
// effects of a commit. Inside, access decides rights, journal reads messages,
// retention removes expired content, and counting counts. All that decides an answer
// is derived from commits: access.Table holds it in memory.
//
// # Storage
//
// A channel has these graphs (channel.ID):
//
//   - its record: name, members, settings, and the readers of each partition;
//   - its journal: the messages, numbered by kg.Sequence;
//   - a partition for each set of an author and its recipients: the content of messages
//     that are addressed to some of the readers;
//   - its receipts and counts;
//   - its facts: those asserted by messages of a channel that is not public.
//
// Read access to a channel includes read access to all of them except the partitions of
// others (access.Guard). A channel belongs to at most one scope, from its creation; without
// access to the scope it is invisible, even to its members.
//
// # Guarantees
//
//   - Sequences are 1, 2, 3 … in each channel, without gaps or reuse: the committer
//     assigns the number within the commit. History, streams, the graph, and the log
//     have the same order.
//   - A message is immutable. Later events, such as a receipt or a retraction, are
//     separate statements.
//   - An idempotency key, used again by the same author in the same channel, returns
//     the first message for as long as the channel exists.
//   - Objects that the caller may not see are reported as not found, with the same
//     error as for objects that do not exist.
//   - A channel whose idle timeout has ended is closed at once for access and display; a
//     commit that records the due time follows. A closed channel stays readable.
//   - Times are commit times, so every replay of the log yields the same state.
package channels
