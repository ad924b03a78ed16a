package kg

import "context"

// pinned is the newest revision, held readable.
type pinned struct {
	head *head
	kv   kv        // all layers
	base *badgerKV // the lowest
	at   Revision  // of base
}

// pin holds the newest revision readable until unpin.
func (s *Store) pin(context.Context) (pinned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return pinned{}, errClosed()
	}
	at := s.layers.flushed
	n, _ := s.pins.Get(at)
	s.pins.Set(at, n+1)
	s.users.Add(1)
	base := s.newKV(at)
	return pinned{s.head.Load(), s.layers.over(base, s.layers.readerMem()), base, at}, nil
}

func (s *Store) unpin(p pinned) {
	p.base.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, _ := s.pins.Get(p.at); n > 1 {
		s.pins.Set(p.at, n-1)
	} else {
		s.pins.Delete(p.at)
	}
	s.users.Done()
}

// publish shows a head whose keys Badger has.
func (s *Store) publish(h *head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showFlushed(h.revision)
	s.discardOld()
	s.showHead(h)
}

// showHead moves readers forward. Called with mu held.
func (s *Store) showHead(h *head) {
	s.head.Store(h)
	close(s.moved)
	s.moved = make(chan struct{})
}

// discardOld lets older versions of Badger's keys go that nobody reads any more.
// Called with mu held.
func (s *Store) discardOld() {
	oldest := s.layers.flushed
	if r, _, ok := s.pins.Min(); ok {
		oldest = min(oldest, r)
	}
	s.db.SetDiscardTs(uint64(oldest))
}
