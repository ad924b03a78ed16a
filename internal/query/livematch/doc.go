// Package livematch computes how a commit changes the solutions of a graph pattern:
// the rows that it adds and removes.
//
// # Evaluation
//
// Each changed statement is matched against each triple of the pattern, including
// those in optional groups, alternatives and negated groups. A match yields a binding
// of the triple's variables; only solutions that agree with the binding can have
// changed. The whole pattern is then evaluated under each binding before and after
// the commit, and the difference of the two sets of rows is the result. The cost thus
// depends on the size of the commit, not on the number of matches.
//
// A binding uses a variable only if every solution of every enclosing group binds it:
// otherwise a solution could lack the variable and still change. In a negated group
// the bindings of the outer solution apply at any depth, so that only the groups
// around the negated group count. A change that yields no binding, or that touches a
// path of more than one step, makes the pattern be evaluated in full.
//
// Rows form a set. If rows do not show all bound variables, another solution may give
// the same row; it is looked for before the row is reported.
package livematch
