// Package query plans and evaluates questions to one snapshot of the store: the
// entities and the statements that meet a condition, their order, their pages
// and their groups. It works on ids and decodes a term only to test, to order
// or to group by it. It knows no protocol: callers fill in the input types
// (EntityFilter, EntityOrder, PatternInput, …) and write the ids that they get.
//
// # Use
//
// A Compiler compiles conditions: Entities, Ends, Statements and Changes. An
// EntityList or a StatementList combines a condition with an order and a page
// size; Page, Count, Scan and Group evaluate it. EntityList.Ends does so for
// entities that a path has found, StatementList.Pages for the statements of
// many entities in one walk over the index. Compiler.Pattern reads a graph
// pattern, which package pattern evaluates; GroupRows groups its rows.
//
// # Planning
//
// A condition is compiled to a test and to access paths: index ranges that contain
// every match (the entities of a class, a lookup by value, the statements of a
// predicate, a path backward). scanCandidates estimates the access paths by the
// catalogue's counts and reads the cheapest, or all subjects if that is
// cheaper. It gathers the statements that the test and the order need in the
// same walk. An access path that has to be read as a whole is not used if it exceeds
// what is left of the caller's budget.
//
// Lists are in the order of the index unless they have an order of their own,
// which keeps one page in memory (topN). Values are compared as package
// valuespace says.
//
// # Rooms
//
//   - valuespace: the values of literals and their comparison
//   - path: property paths, shortest paths and neighbourhoods
//   - pattern: graph patterns
//   - livematch: how a commit changes the solutions of a pattern
package query
