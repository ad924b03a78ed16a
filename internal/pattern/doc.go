// Package pattern finds what fits a graph pattern: triples with variables,
// property paths, optional groups, alternatives and groups that must be absent,
// over one snapshot of the store.
//
// # What a pattern means
//
// A Group means what the same group means in SPARQL 1.1 (section 18): its
// solutions are those of its triples and unions joined, left joined with each
// optional group in turn, without those that a filter or a NotExists group
// refuses. Solutions are counted, not only known. Where SPARQL leaves or makes
// room, this is what holds here:
//
//   - A triple without a graph matches what the shown graphs say together, each
//     triple once; one with a graph, or a variable for it, each statement.
//   - Each optional group and each alternative means what it means alone: a
//     variable that it may leave unbound is not seen from outside, only compared
//     at its end. A filter sees the variables of its own group, and in an
//     optional group also what that is joined with.
//   - In NotExists everything that the solution binds is substituted, at any
//     depth and in filters.
//   - A path counts as SPARQL counts it: sequences and alternatives are written
//     out as joins and unions, on variables that nobody sees; *, +, ? and ranges
//     of repetitions relate two nodes or do not. {n} is a sequence of n times the
//     same. A path without a step leads from a term that the pattern gives to
//     itself, whether or not a statement has it; from a variable, where the view
//     shows a statement that has it as subject or object.
//   - A filter judges terms that may be missing (the zero Term): what an error
//     is in SPARQL is up to the filter.
//
// # How
//
// Terms become ids once, all work is done on ids, and only filters, orders and
// whoever shows the rows decode them. The elements of a group are put in order
// by how many rows each makes of those before it, by the catalogue's counts and
// a small sample (see joinOrder). Rows then go through one at a time: a triple
// is read through the index that its bound parts choose (index nested loops,
// with one kg.Sweep for each step, which steps forward where the next lies
// close), and triples that only lack one and the same variable are walked side
// by side in its order, each skipping to where the others stand (a leapfrog
// merge join). Nothing is held in memory but for Distinct and Order.
//
// An evaluation can begin behind a place that another one gave: at a row of its
// outermost scan and so many rows further, or after so many rows where there is
// none or the rows were sorted.
package pattern
