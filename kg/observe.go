package kg

import "slices"

// Observe has fn called with each commit from now on, in the order of their revisions,
// when it is durable and before any reader sees it; stop ends that. It is for what is
// kept in memory of journals, of which Options.OnSystemChange does not tell. fn is
// called under the committer and must neither block nor call the store. A bulk load is
// not told: it writes no graph of koine's own.
func (s *Store) Observe(fn func(*Commit)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &observer{fn}
	s.observers.Store(new(append(slices.Clone(s.observing()), o)))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.observers.Store(new(slices.DeleteFunc(slices.Clone(s.observing()), func(other *observer) bool { return other == o })))
	}
}

// observer is one that is told of commits.
type observer struct{ fn func(*Commit) }

func (s *Store) observing() []*observer {
	if list := s.observers.Load(); list != nil {
		return *list
	}
	return nil
}

func (s *Store) tellObservers(commits []*Commit) {
	for _, o := range s.observing() {
		for _, c := range commits {
			o.fn(c)
		}
	}
}
