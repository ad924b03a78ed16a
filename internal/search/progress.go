package search

import (
	"koine/internal/textindex"
	"koine/kg"
)

// Progress tells how far the index is.
type Progress struct {
	// Building means that the index is being built anew, and that texts may be missing.
	Building bool
	// CatchingUp means that the index was saved earlier, and does not know all commits yet that
	// came before it was opened.
	CatchingUp bool
	// Done of Total statements are read while the index is built, and revisions while it
	// catches up. Afterwards they stay.
	Done, Total uint64
	// Revision is the newest that the index knows, and Behind how many come after it.
	Revision kg.Revision
	Behind   uint64
	textindex.Size
}

// Progress returns how far the index is.
func (s *Service) Progress() Progress {
	head := s.store.Head().Revision
	s.mu.Lock()
	p := Progress{Building: s.building, Done: s.done, Total: s.total, Revision: s.position.Revision}
	from, until := s.opened, s.until
	s.mu.Unlock()
	if !p.Building && until > from {
		p.Done, p.Total = uint64(min(p.Revision, until)-from), uint64(until-from)
		p.CatchingUp = p.Revision < until
	}
	if head > p.Revision {
		p.Behind = uint64(head - p.Revision)
	}
	p.Size = s.index.Size()
	return p
}

// beginBuilding notes that the index knows nothing, and how many statements will be read.
func (s *Service) beginBuilding() {
	total := s.store.Stats().Statements
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position, s.building, s.done, s.total = kg.Position{}, true, 0, total
	s.opened, s.until = 0, 0
	if s.history != nil {
		s.history.from, s.history.done = kg.Position{}, false
	}
}

// noteRead notes how many statements are read.
func (s *Service) noteRead(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.total = n, max(n, s.total)
}
