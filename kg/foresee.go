package kg

// foreseen is what was looked up of a patch's terms before the committer has it.
type foreseen struct {
	cache   *termCache // of the store that it holds for
	subject *foreseenTerm
	object  foreseenTerm
}

// foreseenTerm is a term with its id, or with the key under which the index has that:
// the term may be new. The zero one says nothing.
type foreseenTerm struct {
	term Term
	id   ID
	key  *termKey
}

// Foresee does ahead of Tx.Apply what can be done of a patch while others have the
// committer: it checks it (Normalise) and looks up what it is about. before, if not nil,
// is a patch that was foreseen: its subject is not looked up again, and most patches of
// an update are about the same.
func (s *Store) Foresee(p *Patch, source AgentID, before *Patch) error {
	if err := p.Normalise(source); err != nil {
		return err
	}
	f := &foreseen{cache: s.cache, object: s.cache.foresee(p.Quad.Object)}
	if before != nil && before.foreseen != nil && before.foreseen.cache == s.cache && before.foreseen.subject.term == p.Quad.Subject {
		f.subject = before.foreseen.subject
	} else {
		subject := s.cache.foresee(p.Quad.Subject)
		f.subject = &subject
	}
	p.foreseen = f
	return nil
}

func (c *termCache) foresee(t Term) foreseenTerm {
	if id, ok := inlineID(t); ok {
		return foreseenTerm{term: t, id: id}
	}
	if id, ok := c.id(t); ok {
		return foreseenTerm{term: t, id: id}
	}
	key := keyOf(t)
	return foreseenTerm{term: t, key: &key}
}

// foreseen gives the id of a term that was foreseen, as id does; f may be nil, or of
// another term.
func (d dictionary) foreseen(t Term, f *foreseenTerm) (ID, bool, error) {
	switch {
	case f == nil || f.term != t || !d.has(f.id):
		return d.id(t)
	case !f.id.IsZero():
		return f.id, true, nil // a term keeps its id
	}
	if d.fresh != nil {
		if id, ok := d.fresh.id(t); ok {
			return id, true, nil
		}
	}
	return d.find(t, *f.key)
}
