package kgtest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"koine/kg"
)

// The suite compares statements, changes and events as lines of text in a form that is
// complete, sortable, and readable in a diff.

const timeForm = "15:04:05.000"

func assertionText(a kg.Assertion) string {
	s := string(a.Source)
	if a.HasCertainty {
		s += fmt.Sprintf(" %g", a.Certainty)
	}
	if v := a.Validity; !v.IsZero() {
		s += fmt.Sprintf(" %s to %s", v.From.Format(time.RFC3339Nano), v.Until.Format(time.RFC3339Nano))
	}
	if e := a.Embedding; e != nil {
		s += fmt.Sprint(" ", e)
	}
	return fmt.Sprintf("%s %s %s r%d", s, a.Time.UTC().Format(timeForm), a.Provenance, a.Revision)
}

// assertionsText formats the assertions sorted by source.
func assertionsText(as []kg.Assertion) string {
	lines := make([]string, len(as))
	for i, a := range as {
		lines[i] = assertionText(a)
	}
	slices.Sort(lines)
	return "[" + strings.Join(lines, "; ") + "]"
}

func quadText(q kg.Quad) string {
	return fmt.Sprintf("%s %s %s %s", termText(q.Graph), termText(q.Subject), termText(q.Predicate), termText(q.Object))
}

// termText abbreviates a long term with a hash.
func termText(t kg.Term) string {
	s := t.String()
	if len(s) <= 200 {
		return s
	}
	return fmt.Sprintf("%.40s… (%d bytes, %x)", s, len(s), sha256.Sum256([]byte(s)))
}

func statementText(s kg.Statement) string {
	return quadText(s.Quad) + " " + assertionsText(s.Assertions)
}

// statementLines returns the statements as sorted lines.
func statementLines(statements []kg.Statement) []string {
	lines := make([]string, len(statements))
	for i, s := range statements {
		lines[i] = statementText(s)
	}
	slices.Sort(lines)
	return lines
}

func quadLines(statements []kg.Statement) []string {
	lines := make([]string, len(statements))
	for i, s := range statements {
		lines[i] = quadText(s.Quad)
	}
	slices.Sort(lines)
	return lines
}

func changeText(c kg.Change) string {
	return fmt.Sprintf("%s %s (%s) before %s since r%d after %s replaces %v by %d",
		c.Op, quadText(c.Quad), assertionText(c.Assertion),
		assertionsText(c.Before), c.Since, assertionsText(c.After), c.Replaces, c.ReplacedBy)
}

// changeLines returns the changes in order, except that adjacent removals of the same
// subject, predicate and graph are sorted: a store may remove replaced statements in any
// order.
func changeLines(changes []kg.Change) []string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = changeText(c)
	}
	for i := 0; i < len(changes); {
		j := i + 1
		for j < len(changes) && areAdjacentRemovals(changes[i], changes[j]) {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
	return lines
}

func areAdjacentRemovals(a, b kg.Change) bool {
	return a.Op == kg.Remove && b.Op == kg.Remove && a.Quad.Subject == b.Quad.Subject &&
		a.Quad.Predicate == b.Quad.Predicate && a.Quad.Graph == b.Quad.Graph
}

func eventText(e kg.Event) string {
	s := fmt.Sprintf("%d.%d %s %s", e.Position.Revision, e.Position.Index, e.Op, statementText(e.Statement))
	if len(e.Previous) != 0 {
		s += fmt.Sprintf(" previous %v", statementLines(e.Previous))
	}
	if e.StatementRemains {
		s += " remains"
	}
	return s
}

func eventLines(events []kg.Event) []string {
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = eventText(e)
	}
	return lines
}
