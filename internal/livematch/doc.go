// Package livematch tells how the solutions of a graph pattern change with a
// commit: which rows came, and which went.
//
// # How
//
// Each changed statement is compared with each triple of the pattern, also those
// in optional groups, alternatives and groups that must be absent. Where it
// fits, what the triple's variables would be is a binding: the solutions that
// the change may have made or ended agree with it. The whole pattern is then
// evaluated under each binding as of before the commit and after it, and the
// difference of the two sets of rows is what changed. So the cost goes with what
// the commit touched, not with how much matches.
//
// A binding is used for a variable only if every solution of every group around
// the triple binds it: elsewhere a solution may lack the variable, and change
// all the same. Inside a group that must be absent what the solution around it
// binds stands for its variables at any depth, so only the groups around that
// one count. A change that leaves no binding, and one of a path with more than
// one step, make the pattern be evaluated in full.
//
// Rows are a set. Where the rows do not show all that was bound, another
// solution may give the same row, and it is looked for before a row is told.
package livematch
