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
	term  Term
	id    ID
	key   *termKey
	lacks *badgerKV // Store.flushedKV that was seen not to have the key; nil where nobody looked
}

// showFlushed lets callers see what Badger has up to a revision. Only the committer
// calls it, with mu held, and Open.
func (s *Store) showFlushed(at Revision) {
	s.layers.flushed = at
	s.flushedKV.Store(s.newKV(at))
}

// Foresight does ahead of Tx.Apply what can be done of an update's patches while others
// have the committer. It belongs to one goroutine.
type Foresight struct {
	store  *Store
	source AgentID
	last   *foreseenTerm // subject of the patch before
	room   []foreseen
}

// Foresight is that of an update with about so many patches. source makes the assertions
// of those that name none.
func (s *Store) Foresight(source AgentID, patches int) *Foresight {
	return &Foresight{store: s, source: source, room: make([]foreseen, 0, patches)}
}

// See checks a patch (Patch.Normalise) and looks up what it is about. Most patches of an
// update are about the same subject, which is not looked up again.
func (f *Foresight) See(p *Patch) error {
	if err := p.Normalise(f.source); err != nil {
		return err
	}
	s := f.store
	if f.last == nil || f.last.term != p.Quad.Subject {
		subject := s.foreseeTerm(p.Quad.Subject)
		f.last = &subject
	}
	if len(f.room) == cap(f.room) {
		f.room = make([]foreseen, 0, 4)
	}
	f.room = append(f.room, foreseen{cache: s.cache, subject: f.last, object: s.foreseeTerm(p.Quad.Object)})
	p.foreseen = &f.room[len(f.room)-1]
	return nil
}

func (s *Store) foreseeTerm(t Term) foreseenTerm {
	if id, ok := inlineID(t); ok {
		return foreseenTerm{term: t, id: id}
	}
	if id, ok := s.cache.id(t); ok {
		return foreseenTerm{term: t, id: id}
	}
	f := foreseenTerm{term: t}
	key := keyOf(t)
	if f.id, f.lacks = s.flushedID(t, key); f.id.IsZero() {
		f.key = &key
	}
	return f
}

// flushedID is the id that Badger has for a term, or else what surely has none; neither
// where that cannot be told now.
func (s *Store) flushedID(t Term, key termKey) (ID, *badgerKV) {
	s.door.RLock()
	defer s.door.RUnlock()
	kv := s.flushedKV.Load()
	if s.closed || kv == nil {
		return ID{}, nil
	}
	id, found, err := dictionary{kv: kv, cache: s.cache}.find(t, key)
	switch {
	case err != nil:
		return ID{}, nil // the committer will see it too
	case found:
		return id, nil
	}
	return ID{}, kv
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
	if f.lacks != nil && f.lacks == d.below {
		d.kv = inMemory{d.kv} // what is there came since
	}
	return d.find(t, *f.key)
}
