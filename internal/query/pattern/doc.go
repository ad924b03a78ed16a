// Package pattern evaluates graph patterns over one snapshot of the store:
// triples with variables, property paths, optional groups, alternatives and
// negated groups.
//
// Compile checks a Group and returns a Pattern; Pattern.Evaluate plans it for a
// snapshot; Evaluation.Rows runs the plan.
//
// # Semantics
//
// A Group has the semantics of a SPARQL 1.1 group graph pattern (section 18):
// its triples and unions are joined, each optional group is left joined in
// turn, and filters and NotExists groups remove solutions. Solutions form a
// multiset. Where SPARQL leaves a choice:
//
//   - A triple without a graph matches the merge of the graphs in view, each
//     triple once. A triple with a graph, or with a variable for the graph,
//     matches each statement.
//   - Each optional group and each alternative is evaluated on its own: a
//     variable that it may leave unbound is not visible from outside and is only
//     compared when the group ends. A filter sees the variables of its own
//     group; in an optional group it also sees the left side of the join.
//   - Into NotExists, all bindings of the solution are substituted, at any depth
//     and in filters.
//   - Paths have the cardinality that SPARQL gives them: sequences and
//     alternatives expand to joins and unions over hidden variables; *, +, ? and
//     ranges of repetitions are existence tests between two nodes. {n} expands
//     to a sequence of n steps. A path of length zero connects a term that the
//     pattern names to itself, whether or not a statement mentions the term; from
//     a variable, it connects the subjects and objects of the statements in view.
//   - A filter gets the zero Term for an unbound variable. It decides itself how
//     to treat an error of SPARQL's expression language.
//
// # Evaluation
//
// Terms are resolved to ids once and all joins work on ids. Only filters, orders
// and the caller that prints rows decode ids. The planner orders the elements of
// a group by their estimated fan-out, from the catalogue's counts and a small
// sample (see joinOrder). Rows then flow through the plan one at a time. A triple
// is read from the index that its bound positions select (an index nested loop
// join with one kg.Sweep per step, which steps forward when the next key is
// close). Triples that lack only one and the same variable are merged in its
// order, each seeking to the position of the others (a leapfrog merge join). For
// callers that read all rows in any order, triples that form a cycle are read as whole
// predicates and joined in memory, one variable after the other (leapPlan), if that
// costs less.
// Only Distinct and Order hold rows in memory. The first rows of an order by values may be
// found by a scan in that order, which ends with them (orderedScan).
//
// An evaluation can resume from a cursor of an earlier one. A cursor holds a row
// of the outermost scan and the number of rows returned since; without an
// outermost scan, or when rows are sorted, it holds the number of rows only.
package pattern
