// Package path evaluates paths through the graph: SPARQL 1.1 property paths
// (section 9; algebra in 18.2 and 18.4) with the repetitions {m,n} that the final
// grammar omits, the shortest routes between two entities, and the neighborhood
// of an entity.
//
// # Use
//
// Parse parses a path once. Path.Bind resolves its predicates on a snapshot; an
// unknown predicate matches nothing. A Bound answers Forward (the ends of the path
// from a node), Backward (the starts of the path to a node), both for many nodes
// at once (ForwardAll, BackwardAll), Connects, and Pairs for two unknown ends.
// Estimate helps a planner to choose between them. Single reports whether the path
// is one predicate, possibly inverted: an ordinary scan is then the better choice.
//
// # Semantics
//
// A path relates nodes: IRIs, blank nodes and literals. A Bound is a relation: two
// nodes are related or not, without multiplicity. To count as SPARQL does, use
// Form to split the path: sequences, alternatives and single steps become joins,
// unions and statements, and only the remaining closures are bound.
//
// A path of length zero (p*, p?, p{0,2}) relates every node to itself: a known end
// always, whether or not a statement mentions it; with two unknown ends, every node
// in view. A literal is never a subject, but ^p steps from the object to the
// subject: "a/^a" relates subjects that share a value, the only way to pass through
// a literal.
//
// The graphs in view are read as one, unless Options.Graph selects one.
//
// # Evaluation
//
// A path is compiled to an automaton with single steps as transitions. The search
// runs breadth first over pairs of a state and a node, each pair once: it ends on
// every cycle and handles (a/b)* and a{2,5}. The nodes of a level are looked up in
// id order, so that a path of n steps takes n passes over the index for any number
// of starts. Ends are yielded as they are found, nearest first.
package path
