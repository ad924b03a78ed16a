package policy

import (
	"sync"
	"sync/atomic"

	"koine/kg"
)

// KeptChanges is how many of the last changes of policies are remembered, so that
// only those are told of a change whose sight it changed.
const KeptChanges = 4096

// lately remembers the last changes of policies.
type lately struct {
	newest atomic.Uint64 // the revision of the last change; 0 for none since the start

	mu      sync.Mutex  // guards what follows
	changes []change    // the oldest first
	dropped kg.Revision // up to here changes are not remembered
}

// change is what became of one graph's policy.
type change struct {
	revision      kg.Revision
	graph         kg.Term
	before, after *ready
}

func (l *lately) add(c change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == KeptChanges {
		l.dropped = l.changes[0].revision
		l.changes = l.changes[1:]
	}
	l.changes = append(l.changes, c)
}

// forget says that there were changes up to the revision, of which no more is
// known.
func (l *lately) forget(r kg.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = r
	l.newest.Store(uint64(r))
}

// ReadChanged tells whether what the principal may read has changed in a commit
// behind the revision, and up to which revision it looked. A graph that came into
// being with its policy changes nothing: there was nothing to be seen of it.
// While no policy changes the answer takes one atomic load.
func (ps *Policies) ReadChanged(who kg.Principal, after kg.Revision) (changed bool, upTo kg.Revision) {
	l := &ps.lately
	newest := kg.Revision(l.newest.Load())
	if newest <= after {
		return false, after
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < l.dropped {
		return true, newest // what changed is forgotten
	}
	for i := len(l.changes) - 1; i >= 0 && l.changes[i].revision > after; i-- {
		c := &l.changes[i]
		if c.before == nil && c.after != nil && c.after.Made {
			continue
		}
		if (ps.level(&who, c.graph, c.before) >= kg.Read) != (ps.level(&who, c.graph, c.after) >= kg.Read) {
			return true, newest
		}
	}
	return false, newest
}
