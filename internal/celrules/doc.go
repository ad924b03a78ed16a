// Package celrules judges requests by the operator's own rules, written in CEL
// (https://cel.dev) in a file:
//
//	rules:
//	  - name: salaries-need-review
//	    on: update
//	    when: patch.predicate == "https://example.org/salary"
//	    effect: review
//	    message: Changes of salaries need a review.
//
// A Set holds the rules of one file. It is a kg.Verifier for updates, refuses queries
// and subscriptions, and hides statements from callers. A File keeps the Set of a file
// that may change: if the new file is invalid, the old rules stay in force.
//
// # Promises
//
//   - The variables of rules are typed, so that a misspelt name is found when the
//     file is read and not when the rule is needed.
//   - A rule that cannot be evaluated counts as one that holds, against the
//     caller: it fails closed.
//   - A rule sees all statements that it asks for, or cannot be evaluated
//     (MaxBefore and others): a statement cannot be hidden by adding others.
//   - Judging is bounded in cost and time (Options); past either it ends with
//     CodeJudgeLimit and nothing is written.
//   - A rule that hides depends on the caller and on the predicate and graph of a
//     statement only: it is evaluated once for each such pair in a read, and the
//     stored counts for such pairs agree with scans.
package celrules
