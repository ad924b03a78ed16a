// Package path follows ways through the graph: property paths as SPARQL 1.1
// has them (section 9, its algebra in 18.2 and 18.4), with the repetitions
// {m,n} that its grammar left out; the shortest ways between two entities; and
// what is around one.
//
// # Use
//
// Parse makes a *Path of a text, once. Bind ties it to a snapshot: predicates
// become ids there, and one that the store does not know matches nothing. A
// Bound answers Forward (where does the path lead from here), Backward (from
// where does it lead here), both for many at once (ForwardAll, BackwardAll),
// Connects, and Pairs, where neither end is known. Estimate helps whoever has
// to choose between them. A path that is a single predicate, or one against its
// direction, says so (Single): then an ordinary scan does the same, and better.
//
// # What a path means
//
// A path relates nodes: IRIs, blank nodes and literals. To a Bound two nodes are
// related or not, never twice. Whoever counts ways as SPARQL does takes the path
// apart first (Form): sequences, alternatives and single steps count as joins,
// unions and statements, and only what is left of them, the closures, are bound.
// A path that may have no step at all (p*, p?, p{0,2}) relates every node with
// itself: from a known end it gives that end, whether or not a statement has it;
// where neither end is known it gives every node that the view shows. No statement
// leads on from a literal, but ^p does, from the object to the subject: so "a/^a"
// relates what has a value in common, and a literal is passed in the middle only
// in this way.
//
// The graphs that the view shows are read as one, unless Options.Graph names
// the one to stay in.
//
// # How
//
// A path becomes an automaton whose moves are single steps, and what is searched
// is the product of its states with the nodes, breadth first, each pair once:
// that ends on every cycle and is right for (a/b)* and a{2,5}. All nodes of a
// level are looked up in the order of their ids, so that a path of n steps takes
// n passes over the index, however many nodes it starts from. Ends come as they
// are found, the nearest first.
package path
