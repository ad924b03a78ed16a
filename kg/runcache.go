package kg

import (
	"sync"

	"koine/kg/internal/keys"
)

// runCache keeps decoded runs: the statements of one predicate in one graph, in the order of
// their objects, or those of one class. A run belongs to the revision that last changed the
// predicate in the graph, and is read as long as nothing of it has changed.
type runCache struct {
	maxBytes int64

	mu    sync.Mutex // guards the fields below
	runs  map[runKey]*cachedRun
	bytes int64
	reads uint64

	hits, dropped int // for tests
}

// runKey names a run.
type runKey struct{ graph, predicate, object ID } // object: zero for all

// cachedRun is a run. It is never modified after it was added to the cache, except for used.
type cachedRun struct {
	touched  Revision // when the predicate last changed in the graph
	name     ID       // of the graph
	objects  []ID
	ends     []uint32 // for each object, the end of its subjects
	subjects []uint64 // packed
	used     uint64   // guarded by runCache.mu
}

// runOverhead is the memory of an empty run.
const runOverhead = 256

func newRunCache(maxBytes int64) *runCache {
	if maxBytes < 0 {
		return nil
	}
	return &runCache{maxBytes: maxBytes, runs: map[runKey]*cachedRun{}}
}

func (r *cachedRun) size() int64 {
	return runOverhead + int64(cap(r.objects))*keys.IDSize + 4*int64(cap(r.ends)) + 8*int64(cap(r.subjects))
}

// lookUp returns the run of a revision, nil if the cache does not have it.
func (c *runCache) lookUp(key runKey, touched Revision) *cachedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[key]
	if r == nil || r.touched != touched {
		return nil
	}
	c.reads++
	c.hits++
	r.used = c.reads
	return r
}

// add adds a run, in the place of an older one, and drops those that were not read for the
// longest time.
func (c *runCache) add(key runKey, r *cachedRun) {
	if r.size() > c.maxBytes/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.runs[key]; had != nil {
		if had.touched >= r.touched {
			return
		}
		c.bytes -= had.size()
	}
	c.reads++
	r.used = c.reads
	c.runs[key] = r
	c.bytes += r.size()
	for c.bytes > c.maxBytes {
		var oldest runKey
		for k, other := range c.runs {
			if had := c.runs[oldest]; had == nil || other.used < had.used {
				oldest = k
			}
		}
		c.bytes -= c.runs[oldest].size()
		c.dropped++
		delete(c.runs, oldest)
	}
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
func (r *cachedRun) appendQuad(q *IDQuad, maxBytes int64) bool {
	if n := len(r.objects); n == 0 || r.objects[n-1] != q.Object {
		r.objects, r.ends = append(r.objects, q.Object), append(r.ends, uint32(len(r.subjects)))
	}
	packed, fits := packSubject(&q.Subject)
	r.subjects = append(r.subjects, packed)
	r.ends[len(r.ends)-1]++
	return fits && (len(r.subjects)%1024 != 0 || r.size() <= maxBytes/2)
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
