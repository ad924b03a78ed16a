// Package channels keeps conversations: channels with members, and messages in
// the one order in which they were published. Channels and messages are entities
// of the graph like everything else; what this package adds are the rules by which
// they change, and who may see them.
//
// # What is stored
//
// A channel has an id, and these graphs:
//
//   - its record, in RecordGraph: name, members, settings. It decides who may do
//     what, and is one of those by which koine decides (kg.Options.OnSystemChange);
//   - its journal, in MessagesGraph: the messages, numbered by kg.Sequence;
//   - its receipts, in ReceiptsGraph;
//   - its facts, in FactsGraph: an ordinary graph for what messages of a channel
//     that is not public assert.
//
// What is addressed to some only is in more graphs, one for each set of an author
// and its recipients: of such a message the journal has no more than everybody in
// the channel may know (skeleton), and the record says who reads the rest.
//
// Who may do what is said by the rights of a channel (Rights), which go by its kind
// and visibility, and decided in rights.go, as are bans and mutes of a channel or
// of the whole server (Bar). Who may read the channel may read all other of its
// graphs (Guard). Properties are in
// kg.OwnVocabulary: see vocabulary.go.
//
// # Scopes
//
// A scope is an intent, or a task within one, with a record of its own
// (ScopeID.RecordGraph), followed in memory as those of channels are. A channel
// belongs to at most one, from its beginning. Who has no access to the scope sees
// nothing of its channels, member or not; who has it takes part in those whose
// MemberPolicy is ByScope, and knows which names are taken. Roles are those of the
// credential of who asks; addressing, which asks for others, takes those on record.
//
// # Life
//
// A channel is open until it is closed: by CloseChannel, with its scope, or because
// nothing was said for as long as it was to stay open. The last holds at once in what
// is decided and shown; a commit that names the due time follows. Closed is not
// deleted: all that was said is read on, and nothing is published. What was not read
// by then has expired: receipts say so, and requests are answered no more.
//
// # Promises
//
//   - Sequences are 1, 2, 3 … in each channel, without a gap and never used twice:
//     the number is taken inside the commit, from the count of those there are.
//     History, streams, the graph and the log have the same order.
//   - A message does not change. What happens to it later (a receipt, a
//     retraction) stands beside it.
//   - The same idempotency key of the same author in the same channel gives the
//     first message again, for as long as the channel is there.
//   - What one may not see is not found, and that answer is the same as for what
//     is not there.
//   - Times are those of commits: every replay agrees about them.
package channels
