// Package graph serves koine over GraphQL: the contract is schema.graphqls, and
// an Engine executes operations in-process. /graphql (package transport) and
// knowledge/query use the same engine, so they give the same answers under the
// same limits. Begin with Engine.Execute and Engine.Subscribe.
//
// # How an operation is answered
//
// An operation is parsed, checked against the limits and validated, and gets
// one run, which reads everything at one revision. Package executor calls the
// function of each selected field from the tables that are generated from the
// schema (tables_gen.go). Most fields are methods of the Go type of their
// object. Fields with large answers (node, entity, entities, statements, match,
// and each event of a subscription) are planned and loaded as a whole:
//
//   - plan: the selection set becomes a tree of entityPlan, statementPlan and
//     connection, with all arguments checked and all filters compiled;
//   - load: level by level, the scans for all entities of a level run in one
//     batch, in the order of the index, and fill nodes;
//   - write: the nodes are an executor.Value, which writes itself.
//
// # How a budget ends an answer
//
// The root fields of an operation with a budget are written one after the
// other, with each page closed at first: it has a feed that returns its elements
// one at a time, and is written without elements. This is the smallest possible
// answer. Then a cutter fills the pages in the order of the answer, depth first,
// while there is room: an element, the pages inside of it, the next element. So
// the size of an answer is known before it is sent, and pageInfo may precede the
// nodes.
//
// A field with a list of its own kind takes part by making a feed and calling
// loader.closePage if run.cutter is set. Any other field is answered wholly or
// not at all. A kg.Meter counts the statements, and at its limit every scan
// fails with CodeBudgetExceeded; a page whose feed fails so is cut there.
//
// # How a field fails
//
// A field that may be null fails alone, and its error has its path and its place
// in the document: also one of an entity or a statement that cannot be planned. What
// fails while a level is loaded fails the field of the table that it belongs to.
// More than executor.MaxErrors errors fail the root field.
//
// # Files
//
//   - preparation: engine, prepare; packages limit (limits, shape, cost, budgets)
//     and documents; run is the state of an operation, moment and cursor are
//     places in time and in a list, package internal/views views and ids
//   - plans: plan, read, entity, statement, connection, scalars; follow,
//     value_path, around (paths and neighborhoods), history, changes, diff
//   - loading: load_*; package query finds the elements of a list and their
//     groups (group, match_*)
//   - budgets: budgeted, cut, feed, closed_page
//   - subscriptions: subscribe, stream, and *_event for each kind
//   - channels: channel, room, restrictions, message, messages, message_facts,
//     publish, receipts, inbox, ask, signal; scope, scope_events; inside, where
//     tables and plans nest; evidence, load_typed
//   - answers and errors: resolvers, introspection; packages internal/scalar,
//     internal/fault, internal/hint
//
// # Promises
//
//   - An operation reads one revision, and all pages of a walk read that of its
//     first page. The answer has the revision and the position after it.
//   - An explicit view only narrows the view of the request.
//   - Limits are checked before work is done. An answer that exceeds them is an
//     error and never cut silently. An answer that exceeds a budget is cut and
//     reports the place.
//   - A panic is an internal error of the field in which it happened.
package graph

//go:generate go -C .. run ./graph/internal/tablegen gqlgen.yml
