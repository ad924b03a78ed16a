package textindex

// Together returns an index for searches over the texts of two, which have no text in common.
func (x *Index) Together(with *Index) *Index {
	return &Index{parts: []*Index{x, with}, turns: x.turns, light: x.light}
}

// Has reports whether a text is in the index.
func (x *Index) Has(subject Subject, ref Ref) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if _, ok := x.pending.docs[key{subject, ref}]; ok {
		return true
	}
	t := Text{Subject: subject, Ref: ref}
	for _, s := range x.segments {
		if _, ok := s.findText(&t); ok {
			return true
		}
	}
	return false
}

// readTogether calls read with all texts of two indexes in segments.
func readTogether(x, with *Index, read func([]*segment)) {
	x.readSegments(func(list []*segment) {
		with.readSegments(func(more []*segment) { read(append(list[:len(list):len(list)], more...)) })
	})
}
