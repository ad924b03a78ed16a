// Package graph is the GraphQL voice of koine: the contract in schema.graphqls,
// and one Engine that executes operations in-process. /graphql (package
// transport) and knowledge/query use the same engine, so they give the same
// answer under the same limits.
//
// # How an operation is answered
//
// An operation is parsed, measured against the limits, validated, and gets one
// run: everything that it reads is read at one revision. What returns little
// (vocabulary, stats, applyPatches) goes through gqlgen's generated code. What
// may return much (node, entity, entities, statements, and each event of a
// subscription) goes three steps of its own, because generated code costs more
// than a microsecond and often a goroutine for each field:
//
//   - plan: the selection set becomes a tree of entityPlan, statementPlan and
//     connectionPlan, with all arguments checked and all filters compiled;
//   - load: level by level, the scans of all entities of a level in one batch in
//     the order of the index, into nodes;
//   - write: the nodes write their own JSON.
//
// The resolvers of those fields do this and leave the text in their answer (see
// answer.go); the value that they return to the generated code stays empty. So
// the generated Go types of Entity, Statement and what they contain are never
// filled: gqlgen makes them to describe the contract.
//
// # How a budget ends an answer
//
// An operation in which a budget bounds anything is answered otherwise, by
// execBudgeted. Its root fields come one after the other, and each page in it
// is closed at first: it has a feed, from which its elements can be had one at a
// time, and is written without any. What is written then is the least that can
// be answered. After that a cutter fills the pages in the order of the answer,
// depth first, as long as there is room: an element, then the pages inside of
// it, then the next element. So what an answer costs is known before it is
// given, and pageInfo may stand before the nodes.
//
// A field with a list of its own kind takes part by making a feed and calling
// loader.closed where run.cutter is set; a field that does not is given whole,
// or not at all. Statements are counted and ended by a kg.Meter, at which every
// scan fails with CodeBudgetExceeded; a feed that fails so is cut there.
//
// # How a field fails
//
// Alone, where it may be null: its error has its path. In what the generated code
// writes that is gqlgen's work. In what the engine writes a field fails as the root
// field that it is in, but for fields of channels and messages, which the generated
// code writes there: their errors wait, marked, until the answer is whole and tells
// where they are (failures). Under a budget, and in events, what is inside of an answer
// of the engine's is given whole or not at all.
//
// # Where things are
//
//   - on the way to execution: engine, prepare, documents, trusted, persisted,
//     limits, shape, cost, cost_weights, pace; run is one operation, view what it
//     sees, moment and cursor where in time and in a list it reads
//   - what is asked, as plans: plan, read, entity, statement, connection, scalars;
//     follow, value_path, around (ways and surroundings), history, changes, diff
//   - how it is read: load_*, list, candidates, subject, fact, entity_scan, trail
//   - conditions, compiled to tests: filter_*, quantifier, regex, value, decided,
//     path_drive (what an index can look up); ordering
//   - patterns: match_* over package pattern
//   - groups: group, group_sources, grouping, members
//   - budgets: budget, budgeted, cut, feed, closed_page
//   - subscriptions: subscribe, stream, and for each kind *_event
//   - channels: channel, room, bars, message, messages, message_facts, publish, receipts,
//     inbox, ask, signal; scope, scope_events; inside, where the generated code and the
//     engine write in each other; failures; evidence, load_typed
//   - answers and errors: answer, json, errors, hint, null_variable
//
// # Promises
//
//   - One operation reads one revision, and the pages of one walk read that of
//     its first page. The answer tells the revision and the position behind it.
//   - An explicit view only narrows that of the request.
//   - Limits are checked before work is done, and an answer that would grow
//     beyond them is an error, never a silent cut. One that grows beyond a budget
//     is cut, and says where.
//   - A panic is an internal error of the field that it happened in.
package graph
