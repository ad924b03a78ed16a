package textindex

import (
	"context"
	"slices"
	"sync"

	"koine/kg"
)

// maxPending is how many new texts are gathered before they become a segment, and growth is
// how many segments of about one size are merged into one.
const (
	maxPending = 4096
	growth     = 4
)

// Index is a set of texts. Its methods are safe for concurrent use. Searches do not wait for
// segments that are being merged.
type Index struct {
	writing sync.Mutex // held by changes of texts and by merges

	mu       sync.RWMutex // guards the rest, and the removed texts of segments
	segments []*segment   // the older first
	pending  map[key]Text // in no segment yet

	dir    string // "" for an index in memory
	saving sync.Mutex
	number int // of the last file
}

// key names a text.
type key struct {
	subject Subject
	ref     Ref
}

// New returns an empty index in memory.
func New() *Index { return &Index{pending: map[key]Text{}} }

// Add adds a text, unless one with the same subject and Ref is in the index.
func (x *Index) Add(t Text) {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.addPending(t) {
		x.mergeTail()
	}
}

// addPending adds a text to the pending ones, and reports whether there are segments to merge.
func (x *Index) addPending(t Text) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		if _, ok := s.findText(&t); ok {
			return false
		}
	}
	x.pending[key{t.Subject, t.Ref}] = t
	if len(x.pending) == maxPending {
		x.flushPending()
	}
	return len(x.segments) >= growth
}

// Remove takes a text out, as it was added, and reports whether it was there.
func (x *Index) Remove(t Text) bool {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.pending[key{t.Subject, t.Ref}]; ok {
		delete(x.pending, key{t.Subject, t.Ref})
		return true
	}
	for _, s := range x.segments {
		if s.removeText(&t) {
			return true
		}
	}
	return false
}

// Clear takes all texts out.
func (x *Index) Clear() {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		s.release()
	}
	x.segments, x.pending = nil, map[key]Text{}
}

// RemoveGraph takes all texts of a graph out.
func (x *Index) RemoveGraph(graph kg.ID) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for k := range x.pending {
		if k.ref.Graph == graph {
			delete(x.pending, k)
		}
	}
	for _, s := range x.segments {
		s.removeGraph(graph)
	}
}

// Search returns the first hits of a request.
func (x *Index) Search(ctx context.Context, r *Request) (hits []Hit, err error) {
	x.readSegments(func(list []*segment) { hits, err = searchSegments(ctx, list, r) })
	return hits, err
}

// readSegments calls read with all texts in segments. Nothing is added or removed meanwhile.
func (x *Index) readSegments(read func([]*segment)) {
	x.mu.RLock()
	if len(x.pending) > 0 {
		x.mu.RUnlock()
		x.mu.Lock()
		x.flushPending()
		x.mu.Unlock()
		x.mu.RLock()
	}
	defer x.mu.RUnlock()
	read(x.segments)
}

// flushPending makes a segment of the pending texts. x.mu is held.
func (x *Index) flushPending() {
	if len(x.pending) == 0 {
		return
	}
	texts := make([]Text, 0, len(x.pending))
	for _, t := range x.pending {
		texts = append(texts, t)
	}
	x.segments, x.pending = append(x.segments, buildSegment(texts)), map[key]Text{}
}

// mergeTail merges the newest segments while several are of about one size. x.writing is
// held: nothing is removed from a segment that is being merged.
func (x *Index) mergeTail() {
	for {
		x.mu.RLock()
		list := slices.Clone(x.segments)
		x.mu.RUnlock()
		n := len(list) - growth
		if n < 0 || list[n].textCount() > growth*list[len(list)-1].textCount() {
			return
		}
		merged := mergeSegments(list[n:])
		x.mu.Lock()
		// Searches may have added segments behind these, and Save moved some to files.
		for _, s := range x.segments[n : n+growth] {
			s.release()
		}
		x.segments = slices.Concat(x.segments[:n], []*segment{merged}, x.segments[n+growth:])
		x.mu.Unlock()
	}
}
