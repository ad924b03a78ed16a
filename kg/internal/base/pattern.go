package base

import (
	"koine/kg/internal/keys"
)

// Pattern selects statements: a zero Term matches any. Graph may be DefaultGraph.
type Pattern struct {
	Subject, Predicate, Object, Graph Term
}

// Matches tells whether the quad fits the pattern.
func (p Pattern) Matches(q Quad) bool {
	return (p.Subject.IsZero() || p.Subject == q.Subject) &&
		(p.Predicate.IsZero() || p.Predicate == q.Predicate) &&
		(p.Object.IsZero() || p.Object == q.Object) &&
		(p.Graph.IsZero() || p.Graph == q.Graph)
}

// Order names the index that a pattern is read from, by the sequence of its
// parts: rows come in that order, the bound parts apart. A literal without a
// predicate is looked for under every predicate: POSG as well.
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

// MayBeIn tells whether statements of the graph may fit the pattern. koine's own stand in
// koine's own graphs: who follows tasks or proposals is not bothered with other graphs.
func (p Pattern) MayBeIn(graph Term) bool {
	if !p.Graph.IsZero() {
		return p.Graph == graph
	}
	p.Graph = graph
	return IsOwnGraph(graph) || !Reserved(Quad(p))
}
