package kgtest

import (
	"cmp"
	"slices"
	"strings"

	"koine/kg"
)

// Match returns the statements of a snapshot of the view that match the pattern, in the order of
// compareQuads. A zero At is the newest revision; Now must be set if MaxAge is.
func (m *Model) Match(v kg.View, p kg.Pattern) []kg.Statement {
	revision := m.Head()
	if v.At != 0 {
		revision = v.At
	}
	var out []kg.Statement
	for q := range m.past {
		if !p.Matches(q) || !m.isVisible(v, q.Graph) {
			continue
		}
		all, _ := m.stateAt(q, revision)
		if m.isForgotten(v.Principal, q, revision) {
			continue
		}
		if shown := m.admittedAssertions(v, q.Graph, all); len(shown) > 0 {
			out = append(out, kg.Statement{Quad: q, Assertions: shown})
		}
	}
	slices.SortFunc(out, func(a, b kg.Statement) int { return compareQuads(a.Quad, b.Quad) })
	return out
}

// isVisible reports whether the view shows the graph.
func (m *Model) isVisible(v kg.View, graph kg.Term) bool {
	switch {
	case !m.access.Allowed(v.Principal, graph, kg.Read):
		return false
	case v.Graphs != nil:
		return slices.Contains(v.Graphs, graph)
	}
	return v.AllGraphs || !strings.HasPrefix(graph.Value(), kg.OwnGraphPrefix)
}

// admittedAssertions returns the assertions that the view shows.
func (m *Model) admittedAssertions(v kg.View, graph kg.Term, all []kg.Assertion) []kg.Assertion {
	var out []kg.Assertion
	for _, a := range all {
		certainty := 1.0
		if a.HasCertainty {
			certainty = a.Certainty
		}
		old := v.MaxAge > 0 && v.Now.Sub(a.Time) > v.MaxAge
		believed := v.Believed == nil || slices.Contains(v.Believed, a.Source)
		early := a.Time.Before(v.Recorded.From)
		late := !v.Recorded.Until.IsZero() && !a.Time.Before(v.Recorded.Until)
		valid := v.ValidAt.IsZero() || !v.ValidAt.Before(a.Validity.From) && (a.Validity.Until.IsZero() || v.ValidAt.Before(a.Validity.Until))
		since, doubted := m.Doubts[a.Source]
		doubted = doubted && !v.Doubted && !strings.HasPrefix(graph.Value(), kg.OwnGraphPrefix) && !a.Time.Before(since)
		if certainty >= v.MinCertainty && valid && !doubted && !old && !early && !late && believed {
			out = append(out, a)
		}
	}
	return out
}

// Counts returns the numbers of statements in the view by predicate, by class, and by graph.
func (m *Model) Counts(v kg.View) (predicates, classes, graphs map[kg.Term]uint64) {
	predicates, classes, graphs = map[kg.Term]uint64{}, map[kg.Term]uint64{}, map[kg.Term]uint64{}
	for _, s := range m.Match(v, kg.Pattern{}) {
		predicates[s.Predicate]++
		graphs[s.Graph]++
		if s.Predicate == kg.IRI(kg.RDFType) && !s.Object.IsLiteral() {
			classes[s.Object]++
		}
	}
	return predicates, classes, graphs
}

func compareQuads(a, b kg.Quad) int {
	return cmp.Or(a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject),
		a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object))
}
