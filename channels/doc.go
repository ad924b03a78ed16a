// Package channels implements conversations: channels with members, and messages in the
// total order in which they were published. Channels and messages are entities of the
// graph; this package enforces how they change and decides access to them.
//
// Begin with Service: Create, Publish, History, Stream.
//
// # Storage
//
// A channel has an id and these graphs:
//
//   - its record, RecordGraph: name, members, settings. The record decides access and
//     is one of the system graphs that koine follows in memory
//     (kg.Options.OnSystemChange);
//   - its journal, MessagesGraph: the messages, numbered by kg.Sequence;
//   - its receipts, ReceiptsGraph;
//   - its facts, FactsGraph: an ordinary graph for the facts asserted by messages of a
//     channel that is not public.
//
// Content that is addressed to some of the readers is in further graphs, the
// partitions: one for each set of an author and its recipients. The journal then has
// only the part of the message that all readers of the channel may see (skeleton), and
// the record lists the readers of each partition.
//
// Access follows the rights of the channel (Rights), which default by kind and
// visibility, and the bans and mutes of the channel or of the server (Restriction); see
// rights.go. Read access to a channel includes read access to all of its other graphs
// (Guard). The properties are in kg.OwnVocabulary; see vocabulary.go.
//
// # Scopes
//
// A scope is an intent, or a task within an intent. It has a record of its own
// (ScopeID.RecordGraph), which is followed in memory like those of channels. A channel
// belongs to at most one scope, from its creation. Without access to the scope, its
// channels are invisible, even to their members. With access, an agent takes part in
// the channels whose MemberPolicy is ByScope, and learns which channel names are taken.
// For a request, the roles are those of the caller's credential; for the recipients of
// a message, the roles on record.
//
// # Lifecycle
//
// A channel is open until it is closed by CloseChannel, with its scope, or by its idle
// timeout. The idle timeout takes effect immediately for access and display; a commit
// that records the due time follows. A closed channel is still readable, but accepts no
// messages. Messages that were unread when it closed count as expired in receipts, and
// its requests can no longer be answered.
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
//   - Times are commit times, so every replay of the log yields the same state.
package channels
