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
// schema (tables_gen.go). Most fields are methods of the Go type of their object.
// Fields with large answers (entity, entities, statements, match, and each event of
// a subscription to statements) are planned, loaded and written as a whole by package
// internal/knowledge, which has one function for each field too, called by generated
// code. Each kind of object can contain the other: see
// knowledge.Objects and knowledge.ReadOwnEntity.
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
//   - an operation: engine, prepare, subscribe; run is its state. Packages limit
//     (limits, shape, cost, budgets) and documents check it, package internal/hint
//     helps, package internal/fault presents errors
//   - fields: resolvers, node; channel, room, restrictions, message, messages,
//     message_facts, publish, receipts, ask, signal; scope; task; agents,
//     keys, proposals, graphs, shapes, vocabulary and the others by what they are
//     about; evidence, where entities and statements contain objects of tables
//   - subscriptions to domain events: channel_stream, and *_event for each kind
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
