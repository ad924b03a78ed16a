package kg

// AccessChanges is an Access that knows when its answers became others. A watcher
// under one that is not this never learns of it: from the next event on it sees
// what it may, and what it was told before stays as it was.
type AccessChanges interface {
	Access
	// ReadChanged tells whether what the principal may read has changed in a commit
	// behind the revision, and up to which revision that is the answer, which is
	// not before after. It is asked at every commit that a watcher looks at: while
	// nothing changes it must cost next to nothing.
	ReadChanged(p Principal, after Revision) (changed bool, upTo Revision)
}

// unchanged is an Access whose answers stay what they are.
type unchanged struct{ Access }

func (unchanged) ReadChanged(_ Principal, after Revision) (bool, Revision) { return false, after }

// ChangesOf is an Access as one that knows, or what it wraps: an Access that adds
// to another has Unwrap. One whose answers never change is made of any other.
func ChangesOf(access Access) AccessChanges {
	for {
		switch a := access.(type) {
		case AccessChanges:
			return a
		case interface{ Unwrap() Access }:
			access = a.Unwrap()
		default:
			return unchanged{access}
		}
	}
}

func (s *Store) errAccessChanged() *Error {
	e := Errorf(CodeAccessChanged, "what you may see has changed")
	e.Hint = "read anew, then follow from there"
	oldest := s.Oldest()
	e.Oldest = &oldest
	return e
}
