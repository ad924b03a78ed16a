package kg

// Pattern selects statements: a zero Term stands for any. Graph may be
// DefaultGraph.
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
