package kg

import (
	"container/list"
	"sync"

	"koine/kg/internal/keys"
)

// runCache keeps decoded runs: the statements of one predicate in one graph, in the order of
// their objects, or those of one class. A run belongs to the revision that last changed the
// predicate in the graph, and is read as long as nothing of it has changed.
type runCache struct {
	maxBytes int64

	mu       sync.Mutex               // guards the fields below
	runs     map[runKey]*list.Element // of order
	order    list.List                // *cachedRun, the one that was read last first
	bytes    int64                    // of the runs
	building map[runKey]struct{}      // the runs that are being read
	reserved int64                    // bytes of the runs that are being read, at most half of maxBytes

	hits, dropped int // for tests
}

// runKey names a run.
type runKey struct{ graph, predicate, object ID } // object: zero for all

// cachedRun is a run. It is never modified after it was added to the cache.
type cachedRun struct {
	key      runKey
	touched  Revision // when the predicate last changed in the graph
	name     ID       // of the graph
	objects  []ID
	ends     []uint32 // for each object, the end of its subjects
	subjects []uint64 // packed
	reserved int64    // part of runCache.reserved, while the run is being read
}

// runOverhead is the memory of an empty run.
const runOverhead = 256

func newRunCache(maxBytes int64) *runCache {
	if maxBytes < 0 {
		return nil
	}
	return &runCache{maxBytes: maxBytes, runs: map[runKey]*list.Element{}, building: map[runKey]struct{}{}}
}

func (r *cachedRun) size() int64 {
	return runOverhead + int64(cap(r.objects))*keys.IDSize + 4*int64(cap(r.ends)) + 8*int64(cap(r.subjects))
}

// lookUp returns the run of a revision, nil if the cache does not have it.
func (c *runCache) lookUp(key runKey, touched Revision) *cachedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.runs[key]
	if at == nil || at.Value.(*cachedRun).touched != touched {
		return nil
	}
	c.hits++
	c.order.MoveToFront(at)
	return at.Value.(*cachedRun)
}

// beginRun returns an empty run to be filled by a walk, which must call endRun. It returns nil if
// another walk reads this run already.
func (c *runCache) beginRun(key runKey, name ID, touched Revision) *cachedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.building[key]; is {
		return nil
	}
	c.building[key] = struct{}{}
	return &cachedRun{key: key, name: name, touched: touched}
}

// reserveSize reserves the present size of a run that is being read. It returns false if the runs that
// are being read need too much.
func (c *runCache) reserveSize(r *cachedRun) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := r.size() - r.reserved
	if c.reserved+more > c.maxBytes/2 {
		return false
	}
	c.reserved += more
	r.reserved += more
	c.makeRoom()
	return true
}

// endRun ends a walk that began a run. A complete run is added in the place of an older one, unless it
// is too large.
func (c *runCache) endRun(r *cachedRun, complete bool) {
	fits := complete && c.reserveSize(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.building, r.key)
	c.reserved -= r.reserved
	r.reserved = 0
	if !fits {
		return
	}
	if had := c.runs[r.key]; had != nil {
		if had.Value.(*cachedRun).touched >= r.touched {
			return
		}
		c.dropRun(had)
	}
	c.runs[r.key] = c.order.PushFront(r)
	c.bytes += r.size()
	c.makeRoom()
}

// makeRoom drops the runs that were not read for the longest time. It must be called with c.mu held.
func (c *runCache) makeRoom() {
	for c.bytes+c.reserved > c.maxBytes && c.order.Len() > 0 {
		c.dropRun(c.order.Back())
		c.dropped++
	}
}

// dropRun drops a run. It must be called with c.mu held.
func (c *runCache) dropRun(at *list.Element) {
	r := c.order.Remove(at).(*cachedRun)
	c.bytes -= r.size()
	delete(c.runs, r.key)
}

// clear drops all runs. c may be nil.
func (c *runCache) clear() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.runs)
	c.order.Init()
	c.bytes = 0
}

// packSubject packs the id of a subject, false if it does not fit.
func packSubject(id *ID) (uint64, bool) {
	n := id.Number()
	return uint64(id[0])<<56 | n, n>>56 == 0
}

// unpackSubject sets the id of a packed subject.
func unpackSubject(to *ID, packed uint64) {
	*to = keys.Numbered(byte(packed>>56), packed&(1<<56-1))
}

// appendQuad adds a quad to a run that is being read. It returns false if it does not fit.
func (c *runCache) appendQuad(r *cachedRun, q *IDQuad) bool {
	if n := len(r.objects); n == 0 || r.objects[n-1] != q.Object {
		r.objects, r.ends = append(r.objects, q.Object), append(r.ends, uint32(len(r.subjects)))
	}
	packed, fits := packSubject(&q.Subject)
	r.subjects = append(r.subjects, packed)
	r.ends[len(r.ends)-1]++
	return fits && (len(r.subjects)%1024 != 0 || c.reserveSize(r))
}

// runOf returns the key of the run that holds the visible quads of the pattern, and the revision
// of its last change. It returns false unless these are of one graph.
func (s *Snapshot) runOf(p IDQuad) (key runKey, name ID, touched Revision, ok bool, err error) {
	if s.runs == nil || !p.Subject.IsZero() || p.Predicate.IsZero() || keys.Choose(p) != keys.POSG {
		return key, name, 0, false, nil
	}
	graphs := 0
	s.catalogue.EachGraph(keys.PrefixPredicate, p.Predicate, func(graph ID, count uint64) {
		of, is := s.currentGraph(graph)
		if count == 0 || !is || err != nil || !p.Graph.IsZero() && of != p.Graph {
			return
		}
		shown := false
		if shown, err = s.admitsPredicate(p.Predicate, of); shown {
			graphs++
			key, name = runKey{graph, p.Predicate, p.Object}, of
		}
	})
	if graphs != 1 || err != nil {
		return key, name, 0, false, err
	}
	return key, name, s.catalogue.TouchedAt(keys.PrefixPredicate, key.graph, p.Predicate), true, nil
}

// walkRun passes on the quads of a run. Its graph is admitted.
func (w *keyWalk) walkRun(key runKey, r *cachedRun) error {
	q := &w.row.IDQuad
	q.Predicate, q.Graph = key.predicate, r.name
	from := uint32(0)
	for i, end := range r.ends {
		for _, packed := range r.subjects[from:end] {
			unpackSubject(&q.Subject, packed)
			q.Object, q.Predicate, q.Graph = r.objects[i], key.predicate, r.name
			if !w.pass(q) {
				return w.err
			}
		}
		from = end
	}
	return nil
}
