package textindex

import (
	"context"
	"sync"

	"koine/kg"
)

// maxPending is how many new texts are gathered before they become a segment, and growth is
// how many segments of about one size are merged into one.
const (
	maxPending = 4096
	growth     = 4
)

// Index is a set of texts. Its methods are safe for concurrent use.
type Index struct {
	mu       sync.RWMutex
	segments []*segment // the older first
	pending  map[key]Text
	recent   *segment // of pending, made by the first search that needs it

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
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		if _, ok := s.findText(&t); ok {
			return
		}
	}
	x.pending[key{t.Subject, t.Ref}] = t
	x.recent = nil
	if len(x.pending) < maxPending {
		return
	}
	x.segments = append(x.segments, x.pendingSegment())
	x.pending = map[key]Text{}
	x.mergeTail()
}

// Remove takes a text out, as it was added, and reports whether it was there.
func (x *Index) Remove(t Text) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k := (key{t.Subject, t.Ref}); x.pending[k].Subject == t.Subject {
		delete(x.pending, k)
		x.recent = nil
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
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		s.release()
	}
	x.segments, x.pending, x.recent = nil, map[key]Text{}, nil
}

// RemoveGraph takes all texts of a graph out.
func (x *Index) RemoveGraph(graph kg.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k := range x.pending {
		if k.ref.Graph == graph {
			delete(x.pending, k)
			x.recent = nil
		}
	}
	for _, s := range x.segments {
		s.removeGraph(graph)
	}
}

// Search returns the first hits of a request.
func (x *Index) Search(ctx context.Context, r *Request) ([]Hit, error) {
	x.mu.Lock()
	if x.recent == nil && len(x.pending) > 0 {
		x.recent = x.pendingSegment()
	}
	x.mu.Unlock()
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := x.segments
	if x.recent != nil {
		list = append(list[:len(list):len(list)], x.recent)
	}
	return searchSegments(ctx, list, r)
}

func (x *Index) pendingSegment() *segment {
	texts := make([]Text, 0, len(x.pending))
	for _, t := range x.pending {
		texts = append(texts, t)
	}
	return buildSegment(texts)
}

// mergeTail merges the newest segments while several are of about one size.
func (x *Index) mergeTail() {
	for n := len(x.segments); n >= growth; n = len(x.segments) {
		tail := x.segments[n-growth:]
		if tail[0].textCount() > growth*tail[growth-1].textCount() {
			return
		}
		x.segments = append(x.segments[:n-growth:n-growth], mergeSegments(tail))
		for _, s := range tail {
			s.release()
		}
	}
}
