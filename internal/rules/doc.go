// Package rules judges what callers ask for by the operator's own rules, written
// in CEL (https://cel.dev) in a file:
//
//	rules:
//	  - name: salaries-need-review
//	    on: update
//	    when: patch.predicate == "https://example.org/salary"
//	    effect: review
//	    message: A second pair of eyes looks at salaries.
//
// A Set is the rules of one file. It is a kg.Verifier for updates, says whether
// a query or a subscription is refused, and which statements are hidden from a
// caller. A File keeps the Set of a file that may change: a broken file is
// refused and the old rules stay.
//
// # Promises
//
//   - What a rule may look at is typed, so that a misspelt name is found when the
//     file is read, not when the rule should have held somebody up.
//   - A rule that cannot be evaluated counts as one that holds, against the
//     caller: it fails closed.
//   - A rule sees all of what it looks at in the graph, or cannot be evaluated
//     (MaxBefore and its like): nobody hides a statement from it by adding others.
//   - Judging is bounded in cost and time (Options); past either it ends with
//     CodeJudgeLimit and nothing is written.
//   - A rule that hides looks at the caller and at the predicate and graph of a
//     statement only: so it is asked once for each pair of these in a read, and
//     counts, which are kept for such pairs, agree with scans.
package rules
