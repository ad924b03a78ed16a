package idtable

import "koine/kg"

// Set is a set of ids. It takes a bit for each where a Table takes four bytes. The zero Set is
// empty.
type Set struct {
	pages  []*[setPage / 64]uint64 // by the id's number
	others map[kg.ID]struct{}
	n      int
}

const (
	setPage = 1 << 15
	// maxSetPages bounds the pages to as many numbers as those of a Table have.
	maxSetPages = maxIDPages * idPage / setPage
)

// Add adds an id. It reports false if the set has it already.
func (s *Set) Add(id kg.ID) (isNew bool) {
	number := id.Number()
	page := number / setPage
	if !id.IsNumbered() || page >= maxSetPages {
		return s.addOther(id)
	}
	if page >= uint64(len(s.pages)) {
		s.pages = append(s.pages, make([]*[setPage / 64]uint64, int(page)+1-len(s.pages))...)
	}
	p := s.pages[page]
	if p == nil {
		p = new([setPage / 64]uint64)
		s.pages[page] = p
	}
	word, bit := &p[number%setPage/64], uint64(1)<<(number%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	s.n++
	return true
}

func (s *Set) addOther(id kg.ID) bool {
	if _, known := s.others[id]; known {
		return false
	}
	if s.others == nil {
		s.others = map[kg.ID]struct{}{}
	}
	s.others[id] = struct{}{}
	s.n++
	return true
}

// Has reports whether the set has an id.
func (s *Set) Has(id kg.ID) bool {
	number := id.Number()
	page := number / setPage
	if !id.IsNumbered() || page >= maxSetPages {
		_, known := s.others[id]
		return known
	}
	if page >= uint64(len(s.pages)) || s.pages[page] == nil {
		return false
	}
	return s.pages[page][number%setPage/64]>>(number%64)&1 != 0
}

// Len returns the number of ids.
func (s *Set) Len() int { return s.n }
