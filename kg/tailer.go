package kg

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/logentry"
)

// tailer passes new commits from the committer to the watchers that they may concern. The
// committer never waits for it. The tailer's goroutine matches the commits against the filter
// index and wakes the watchers that match.
type tailer struct {
	s *Store

	ringMu sync.Mutex // guards ring
	ring   ring
	more   chan struct{} // capacity 1
	open   openEvents

	// head is the revision up to which commits are matched. It is written with mu held, when
	// the watchers that match have been told.
	head atomic.Uint64

	mu      sync.Mutex // guards the fields below
	filters filterIndex
	count   int
	all     map[*Watcher]struct{}
	// patterns is the number of patterns of all watchers.
	patterns int
}

func newTailer(s *Store) *tailer {
	t := &tailer{
		s: s, filters: newFilterIndex(),
		all:  make(map[*Watcher]struct{}),
		ring: ring{maxCommits: s.options.RingCommits, maxBytes: s.options.RingBytes},
		more: make(chan struct{}, 1),
	}
	t.head.Store(uint64(s.head.Load().revision))
	return t
}

// addToRing adds commits to the ring just before readers see them.
func (t *tailer) addToRing(commits []*Commit) {
	t.ringMu.Lock()
	defer t.ringMu.Unlock()
	for _, c := range commits {
		if c.Written != nil { // it has no visible effect
			seen := *c
			seen.Written = nil
			c = &seen
		}
		t.ring.add(c)
	}
}

// notify signals that new commits are visible. It does not block.
func (t *tailer) notify() {
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// matchedHead returns head.
func (t *tailer) matchedHead() Revision { return Revision(t.head.Load()) }

func (t *tailer) run(ctx context.Context) error {
	for {
		select {
		case <-t.more:
			t.matchNew()
		case <-ctx.Done():
			return nil
		}
	}
}

// matchNew matches all commits up to the store's head.
func (t *tailer) matchNew() {
	for {
		r, more := t.nextRevision()
		if !more {
			return
		}
		c, err := t.commitAt(r)
		if err != nil {
			// The log cannot be read: each watcher that needs this commit gets the error
			// itself.
			t.s.log.Error("reading the log for watchers", "revision", r, "error", err)
			c = nil
		}
		t.mu.Lock()
		matched := c
		if c != nil && c.Replaced != nil { // each watcher decides for itself
			matched = nil
		}
		t.filters.matchCommit(matched, func(w *Watcher) { w.noteMatch(r) })
		if c != nil && slices.ContainsFunc(c.Changes, func(ch Change) bool { return base.IsControlGraph(ch.Quad.Graph) }) {
			t.filters.matchCommit(nil, func(w *Watcher) { w.noteRights(c) })
		}
		t.head.Store(uint64(r))
		t.mu.Unlock()
	}
}

// nextRevision returns the next commit to match, and false if there is none. Without watchers
// it skips ahead: a new watcher reads earlier commits from the log.
func (t *tailer) nextRevision() (r Revision, more bool) {
	head := t.s.head.Load().revision
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		t.head.Store(max(t.head.Load(), uint64(head)))
	}
	select {
	case <-t.s.stop:
		return 0, false
	default:
		matched := t.matchedHead()
		return matched + 1, matched < head
	}
}

// noteMatch wakes the watcher for a commit that may concern it.
func (w *Watcher) noteMatch(r Revision) {
	w.mu.Lock()
	if w.wakeAt == 0 {
		w.wakeAt = r
	}
	w.wakeTo = r
	w.mu.Unlock()
	w.wakeUp()
}

// noteRights wakes the watcher if the commit may have changed its principal's rights. Its
// position stays before the commit until the rights are checked: a client that resumed behind it
// would not learn that it has to read again.
func (w *Watcher) noteRights(c *Commit) {
	changed := c.ChangesGraph(SystemGraph)
	if !changed {
		changed, _ = w.access.ReadChanged(w.filter.View.Principal, c.Revision-1)
	}
	if !changed {
		changed, _ = w.filter.distrust.DoubtsChanged(c.Revision - 1)
	}
	if !changed {
		return
	}
	w.mu.Lock()
	w.recheck = true
	w.mu.Unlock()
	w.wakeUp()
}

// commitAt returns the commit of a revision from the ring or the log.
func (t *tailer) commitAt(r Revision) (*Commit, error) {
	if c := t.ringCommit(r); c != nil {
		return c, nil
	}
	return t.s.readCommit(r)
}

// ringCommit returns the commit of a revision if the ring has it, else nil.
func (t *tailer) ringCommit(r Revision) *Commit {
	t.ringMu.Lock()
	defer t.ringMu.Unlock()
	return t.ring.get(r)
}

// MaxWatchedPatterns bounds the patterns of all watchers together.
const MaxWatchedPatterns = 1 << 20

// addWatcher registers a watcher. The tailer matches commits after known for it.
func (t *tailer) addWatcher(w *Watcher) (known Revision, unlink func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= t.s.options.MaxWatchers {
		e := Errorf(CodeOverloaded, "there are %d watchers, which is the limit", t.count)
		e.RetryAfter = retryWatch
		return 0, nil, e
	}
	n := len(w.filter.Patterns)
	if t.patterns+n > MaxWatchedPatterns {
		return 0, nil, t.errPatterns()
	}
	t.count, t.patterns = t.count+1, t.patterns+n
	t.filters.add(w)
	t.all[w] = struct{}{}
	return t.matchedHead(), sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.count, t.patterns = t.count-1, t.patterns-len(w.filter.Patterns)
		t.filters.remove(w)
		delete(t.all, w)
		w.unlinked = true
	}), nil
}

// setFilter replaces the watcher's filter. The tailer matches commits after known with the new
// one.
func (t *tailer) setFilter(w *Watcher, f *watchFilter) (known Revision, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.unlinked {
		return 0, base.ErrClosed()
	}
	n := len(f.Patterns) - len(w.filter.Patterns)
	if t.patterns+n > MaxWatchedPatterns {
		return 0, t.errPatterns()
	}
	t.patterns += n
	t.filters.remove(w)
	w.filter = f
	t.filters.add(w)
	return t.matchedHead(), nil
}

func (t *tailer) errPatterns() error {
	e := Errorf(CodeOverloaded, "the watchers have %d patterns, which is the limit", t.patterns)
	e.RetryAfter = retryWatch
	return e
}

func (t *tailer) countWatchers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// ring holds the newest commits decoded, bounded in number and size.
type ring struct {
	maxCommits, maxBytes int

	commits []*Commit // contiguous revisions
	sizes   []int
	bytes   int
}

func (r *ring) add(c *Commit) {
	if n := len(r.commits); n > 0 && r.commits[n-1].Revision+1 != c.Revision {
		r.commits, r.sizes, r.bytes = nil, nil, 0
	}
	size := commitSize(c)
	r.commits, r.sizes, r.bytes = append(r.commits, c), append(r.sizes, size), r.bytes+size
	r.dropTo(r.maxBytes)
}

// dropTo drops the oldest commits until the bytes and maxCommits are kept.
func (r *ring) dropTo(bytes int) {
	for len(r.commits) > r.maxCommits || r.bytes > bytes && len(r.commits) > 0 {
		r.bytes -= r.sizes[0]
		r.commits[0] = nil
		r.commits, r.sizes = r.commits[1:], r.sizes[1:]
	}
}

// restShare is the part of the ring that a store at rest keeps.
const restShare = 16

// shrinkRing forgets all but the newest commits, which watchers read from the log then.
func (t *tailer) shrinkRing() {
	t.ringMu.Lock()
	defer t.ringMu.Unlock()
	t.ring.dropTo(t.ring.maxBytes / restShare)
	t.ring.commits, t.ring.sizes = slices.Clone(t.ring.commits), slices.Clone(t.ring.sizes) // the old arrays are as long as before
}

func (r *ring) get(rev Revision) *Commit {
	if len(r.commits) == 0 || rev < r.commits[0].Revision {
		return nil
	}
	if i := int(rev - r.commits[0].Revision); i < len(r.commits) {
		return r.commits[i]
	}
	return nil
}

// commitSize estimates the memory of a commit.
func commitSize(c *Commit) int {
	const perChange, perAssertion = 400, 120
	n := 300 + len(c.Justification) + logentry.GenerationSizeBound(c)
	for i := range c.Changes {
		ch := &c.Changes[i]
		q := &ch.Quad
		n += perChange + len(q.Subject.Value()) + len(q.Predicate.Value()) + len(q.Object.Value()) + len(q.Graph.Value())
		n += perAssertion*(len(ch.Before)+len(ch.After)) + ch.Assertion.ContentBytes()
		for i := range ch.Before { // After shares them
			n += ch.Before[i].ContentBytes()
		}
	}
	return n
}

// recentCommits caches the commits that log readers decoded last: the histories of many
// entities often lead to the same commit, and one of a bulk load takes milliseconds to decode.
// Watchers read each commit once and bypass it.
type recentCommits struct {
	mu      sync.Mutex
	commits [4]*Commit
	next    int // slot to replace next
}

// commitAt returns the commit of a revision from the ring, the cache or the log.
func (l *recentCommits) commitAt(s *Store, r Revision) (*Commit, error) {
	if c := s.tailer.ringCommit(r); c != nil {
		return c, nil
	}
	if c := l.findCached(r); c != nil {
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

func (l *recentCommits) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = [len(l.commits)]*Commit{}
}

func (l *recentCommits) findCached(r Revision) *Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.commits {
		if c != nil && c.Revision == r {
			return c
		}
	}
	return nil
}
