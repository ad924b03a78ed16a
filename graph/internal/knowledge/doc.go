// Package knowledge answers the fields of the schema about the graph: entities,
// statements, patterns, paths and changes. The methods of Query and Subscription
// are fields of GraphQL's types of these names: begin there.
//
// # How a field is answered
//
//   - plan: the selection set becomes a tree of entityPlan, statementPlan and
//     connection, with all arguments checked and all filters compiled. A generated switch
//     calls the method that plans a field (entityFieldPlan and the other types of
//     this name) or appends it (literalLeaves and others), so that none is missing;
//   - load: level by level, the scans for all entities of a level run in one
//     batch, in the order of the index, and fill nodes;
//   - write: the nodes are an executor.Value, which writes itself.
//
// All operations share a Reader. A Run is the state of one: its snapshots, which are
// of one revision, and the rest of its budget.
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
// loader.closePage if Run.cutter is set. Any other field is answered wholly or
// not at all. A kg.Meter counts the statements, and at its limit every scan
// fails with CodeBudgetExceeded; a page whose feed fails so is cut there.
//
// # Files
//
//   - reader: Reader and Run; moment and cursor are places in time and in a list
//   - plans: plan, read, entity, statement, connection, scalars; follow,
//     value_path, around, neighborhood (paths), history, changes, diff
//   - loading: load_*; package query finds the elements of a list and their
//     groups (group, match_*)
//   - budgets: budgeted, cut, feed, closed_page
//   - subscriptions: stream, event, and *_event for each kind
//   - inside: where objects of domain packages, which tables write, contain
//     entities and statements, or are contained in them (Objects)
package knowledge
