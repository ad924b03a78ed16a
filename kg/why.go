package kg

// Justification is why the commit of a revision was made, as far as the principal may
// know: "" where the commit gives no reason or is not kept any more, and where it
// changes something that the principal may not read, or replaced a graph of which
// something may be hidden from it, unless the principal made it.
// It is for the revisions of assertions that the snapshot shows.
func (s *Snapshot) Justification(r Revision) (string, error) {
	if s.commit == nil || r == 0 || r > s.position.Revision {
		return "", nil
	}
	c, err := s.commit(r)
	if CodeOf(err) == CodeRevisionGone {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	asked := graphAnswer{of: VersionOf(s.access)}
	readable := func(graph Term) bool {
		return asked.may(s.access, &s.view.Principal, graph) && !s.generations.hides(graph, c.Revision)
	}
	return c.withMotives(&s.view.Principal, func(q *Quad) bool {
		return readable(q.Graph) && (s.hides == nil || !s.hides(q.Predicate, q.Graph))
	}, func(r *GraphReplacement) bool {
		return readable(r.Graph) && s.hides == nil && s.view.doubts == nil && (s.forgets == nil || !s.forgets(r.Graph))
	}).Justification, nil
}
