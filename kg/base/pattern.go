package base

import (
	"koine/kg/internal/keys"
)

// Pattern selects statements: a zero Term matches any. Graph may be DefaultGraph.
type Pattern struct {
	Subject, Predicate, Object, Graph Term
}

// Matches reports whether the quad matches the pattern.
func (p Pattern) Matches(q Quad) bool {
	return (p.Subject.IsZero() || p.Subject == q.Subject) &&
		(p.Predicate.IsZero() || p.Predicate == q.Predicate) &&
		(p.Object.IsZero() || p.Object == q.Object) &&
		(p.Graph.IsZero() || p.Graph == q.Graph)
}

// Order returns the name of the index order that the pattern is read from. Rows come in
// that order. A literal without a predicate is read from POSG, once for each predicate.
func (p IDPattern) Order() string {
	if keys.NeedsPredicates(IDQuad(p)) {
		return "POSG"
	}
	switch keys.Choose(IDQuad(p)) {
	case keys.POSG:
		return "POSG"
	case keys.OSPG:
		return "OSPG"
	case keys.GSPO:
		return "GSPO"
	case keys.GPOS:
		return "GPOS"
	}
	return "SPOG"
}

// MayBeIn reports whether the graph may hold matching statements. koine's own statements
// are in koine's own graphs, so that watchers of tasks or proposals skip all other graphs.
func (p Pattern) MayBeIn(graph Term) bool {
	if !p.Graph.IsZero() {
		return p.Graph == graph
	}
	p.Graph = graph
	return IsOwnGraph(graph) || !Reserved(Quad(p))
}
