package channels

import (
	"sync"
	"sync/atomic"

	"koine/kg"
)

// KeptChanges is how many of the last changes of channels are remembered, so that
// only those are told of a change whose sight it changed.
const KeptChanges = 4096

// lately remembers the last changes of channels.
type lately struct {
	newest atomic.Uint64 // the revision of the last change; 0 for none since the start

	mu      sync.Mutex // guards what follows
	changes []change   // the oldest first
	dropped kg.Revision
}

// change is what became of one channel or scope that was there before.
type change struct {
	revision      kg.Revision
	agent         kg.AgentID // set where it is about one agent in all channels
	before, after sight
}

// sight is what somebody may or may not read.
type sight interface {
	readBy(kg.Principal) bool
}

func (l *lately) add(c change) {
	defer l.newest.Store(uint64(c.revision))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == KeptChanges {
		l.dropped = l.changes[0].revision
		l.changes = l.changes[1:]
	}
	l.changes = append(l.changes, c)
}

// changed tells whether what the reader may read has changed behind the revision,
// and up to where it looked.
func (l *lately) changed(p kg.Principal, after kg.Revision) (bool, kg.Revision) {
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
		if c.agent != "" && c.agent == p.ID || c.agent == "" && c.before.readBy(p) != c.after.readBy(p) {
			return true, newest
		}
	}
	return false, newest
}
