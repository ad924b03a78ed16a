package kg

// Justification is why the commit of a revision was made, as far as the principal may
// know: "" where the commit gives no reason or is not kept any more, and where it
// changes something that the principal may not read, unless the principal made it.
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
	return c.motives(&s.view.Principal, func(q *Quad) bool {
		return asked.may(s.access, &s.view.Principal, q.Graph) && (s.hides == nil || !s.hides(q.Predicate, q.Graph))
	}).Justification, nil
}
