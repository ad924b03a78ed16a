package kg

import "sync"

// lately keeps the few commits that readers of the log decoded last: the
// histories of many entities often lead to the same commit, and that of a bulk
// load takes milliseconds to decode. A watcher that reads the log reads each of
// its commits once, and passes it by.
type lately struct {
	mu      sync.Mutex
	commits [4]*Commit
	next    int // is replaced next
}

// commit is the commit of a revision, from the ring, from here, or from the log.
func (l *lately) commit(s *Store, r Revision) (*Commit, error) {
	if c := s.tailer.recent(r); c != nil {
		return c, nil
	}
	if c := l.find(r); c != nil {
		return c, nil
	}
	c, err := s.readCommit(r)
	if err != nil || commitSize(c) > s.options.RingBytes/len(l.commits) {
		return c, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits[l.next] = c
	l.next = (l.next + 1) % len(l.commits)
	return c, nil
}

func (l *lately) find(r Revision) *Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.commits {
		if c != nil && c.Revision == r {
			return c
		}
	}
	return nil
}
