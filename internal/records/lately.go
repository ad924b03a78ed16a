package records

import (
	"sync"
	"sync/atomic"

	"koine/kg"
)

// KeptChanges is how many of the last changes are remembered, so that only those
// are told of a change whose sight it changed.
const KeptChanges = 4096

// Lately remembers the last changes of what decides who reads what. The zero
// Lately is ready. Safe for concurrent use.
type Lately[T any] struct {
	newest atomic.Uint64 // the revision of the last change; 0 for none since the start

	mu      sync.Mutex  // guards what follows
	changes []dated[T]  // the oldest first
	dropped kg.Revision // up to here changes are not remembered
}

type dated[T any] struct {
	revision kg.Revision
	change   T
}

// Add remembers what a commit changed, in the order of the revisions.
func (l *Lately[T]) Add(r kg.Revision, changes ...T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if len(l.changes) == KeptChanges {
			l.dropped = l.changes[0].revision
			l.changes = l.changes[1:]
		}
		l.changes = append(l.changes, dated[T]{r, c})
	}
	if len(changes) > 0 {
		l.newest.Store(uint64(r))
	}
}

// Forget says that there were changes up to the revision, of which no more is
// known.
func (l *Lately[T]) Forget(r kg.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = r
	l.newest.Store(uint64(r))
}

// Since tells whether a change behind the revision counts, and up to which
// revision it looked. One that is forgotten counts. While nothing changes the
// answer takes one atomic load.
func (l *Lately[T]) Since(after kg.Revision, counts func(*T) bool) (changed bool, upTo kg.Revision) {
	newest := kg.Revision(l.newest.Load())
	if newest <= after {
		return false, after
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < l.dropped {
		return true, newest
	}
	for i := len(l.changes) - 1; i >= 0 && l.changes[i].revision > after; i-- {
		if counts(&l.changes[i].change) {
			return true, newest
		}
	}
	return false, newest
}
