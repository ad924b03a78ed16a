package systemgraph

import (
	"sync"
	"sync/atomic"

	"koine/kg"
)

// MaxRecentChanges is the number of recent changes that are remembered. A watcher is checked
// again only if one of them concerns it.
const MaxRecentChanges = 4096

// RecentChanges remembers the recent changes of access rules. The zero value is ready. Safe
// for concurrent use.
type RecentChanges[T any] struct {
	newest atomic.Uint64 // the revision of the last change; 0 for none since the start

	mu      sync.Mutex       // guards changes and dropped
	changes []datedChange[T] // oldest first
	dropped kg.Revision      // changes up to this revision are forgotten
}

type datedChange[T any] struct {
	revision kg.Revision
	change   T
}

// Add records the changes of a commit. Call it in the order of the revisions.
func (l *RecentChanges[T]) Add(r kg.Revision, changes ...T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if len(l.changes) == MaxRecentChanges {
			l.dropped = l.changes[0].revision
			l.changes = l.changes[1:]
		}
		l.changes = append(l.changes, datedChange[T]{r, c})
	}
	if len(changes) > 0 {
		l.newest.Store(uint64(r))
	}
}

// AssumeChangedUpTo records that unknown changes happened up to the revision.
func (l *RecentChanges[T]) AssumeChangedUpTo(r kg.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = r
	l.newest.Store(uint64(r))
}

// Since reports whether a change after the revision counts, and up to which revision it
// has checked. A forgotten change counts. If nothing has changed, Since costs one
// atomic load.
func (l *RecentChanges[T]) Since(after kg.Revision, counts func(*T) bool) (changed bool, upTo kg.Revision) {
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
