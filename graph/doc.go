// Package graph is the GraphQL voice of koine: the contract in schema.graphqls,
// one Engine that executes operations in-process, and a Handler that speaks
// GraphQL over HTTP. /graphql and knowledge/query use the same engine, so they
// give the same answer under the same limits.
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
// # Promises
//
//   - One operation reads one revision, and the pages of one walk read that of
//     its first page. The answer tells the revision and the position behind it.
//   - An explicit view only narrows that of the request.
//   - Limits are checked before work is done, and an answer that would grow
//     beyond them is an error, never a silent cut.
//   - A panic is an internal error of the field that it happened in.
package graph
