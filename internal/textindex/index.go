package textindex

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"koine/kg"
)

// growth is how many segments of about one size are merged into one.
const growth = 4

// Index is a set of texts. Its methods are safe for concurrent use. Searches do not wait for
// segments that are being merged.
type Index struct {
	writing sync.Mutex // held by changes of texts and by merges

	mu       sync.RWMutex // guards the rest, and the removed texts of segments
	segments []*segment   // the older first
	pending  *builder     // texts in no segment yet

	turns chan struct{} // has as many places as heavy searches evaluate at a time
	light uint64        // lightTexts, but for tests

	parts []*Index // of Together; the rest is then empty, but for turns and light

	dir    string // "" for an index in memory
	saving sync.Mutex
	names  names
	// wrote, if it is set, is called after each file of a Save. An error ends the Save there,
	// as a kill does.
	wrote func(name string) error
}

// key names a text.
type key struct {
	subject Subject
	ref     Ref
}

// New returns an empty index in memory.
func New() *Index {
	return &Index{pending: newBuilder(), turns: make(chan struct{}, runtime.GOMAXPROCS(0)), light: lightTexts}
}

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
	x.pending.addText(&t)
	if full := x.pending; full.isFull() {
		x.flushPending()
		x.pending = full.startAnew() // more are likely to come
	}
	return len(x.segments) >= growth
}

// Remove takes a text out, as it was added, and reports whether it was there.
func (x *Index) Remove(t Text) bool {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending.dropText(key{t.Subject, t.Ref}) {
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
	x.segments, x.pending = nil, newBuilder()
}

// RemoveGraph takes all texts of a graph out.
func (x *Index) RemoveGraph(graph kg.ID) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending.dropGraph(graph)
	for _, s := range x.segments {
		s.removeGraph(graph)
	}
}

// Search returns the first hits of a request.
func (x *Index) Search(ctx context.Context, r *Request) (hits []Hit, err error) {
	if !x.isLight(r.Query) {
		if err := x.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer x.endTurn()
	}
	x.readSegments(func(list []*segment) { hits, err = searchSegments(ctx, list, r) })
	return hits, err
}

// takeTurn waits until there is a processor for a heavy search, in the order of arrival. More
// heavy searches than processors would take slices of 10 ms in turns, in which each other
// search waits for a slice of each of them.
func (x *Index) takeTurn(ctx context.Context) error {
	select {
	case x.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) endTurn() { <-x.turns }

// lightTexts is how many texts have the words of a light search at most. A light search takes
// less time than its turn would make it wait, and begins at once.
const lightTexts = 50_000

// isLight reports whether a search is known to be light. A word with other forms, whose number is
// not known before they are listed, is not, nor is one that may be misspelt.
func (x *Index) isLight(q *Query) (light bool) {
	x.readSegments(func(list []*segment) {
		var all uint64
		for _, w := range q.words {
			if w.prefix {
				return
			}
			var n uint64
			for _, s := range list {
				if term, ok := s.terms.findTerm(exactKey(w.folded)); ok {
					s.textsWith(term, func(_ uint32, texts uint64) { n += texts })
				}
			}
			if all += n; n == 0 || all > x.light {
				return
			}
		}
		light = true
	})
	return light
}

// readSegments calls read with all texts in segments. Nothing is added or removed meanwhile.
func (x *Index) readSegments(read func([]*segment)) {
	if x.parts != nil {
		readTogether(x.parts[0], x.parts[1], read)
		return
	}
	x.mu.RLock()
	if len(x.pending.docs) > 0 {
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
	if len(x.pending.docs) > 0 {
		x.segments = append(x.segments, x.pending.buildSegment())
	}
	x.pending = newBuilder()
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
		x.mergeRange(list[n:], n)
	}
}

// settledShare is the part of the texts that may be outside the largest segment of a settled
// index.
const settledShare = 8

// Settle merges the segments into one, unless nearly all texts are in one. It is worth while when
// no texts come: a search in one segment is faster. It reports whether it changed the segments.
func (x *Index) Settle() bool {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	x.flushPending()
	list := slices.Clone(x.segments)
	x.mu.Unlock()
	var all, largest uint32
	for _, s := range list {
		all, largest = all+s.textCount(), max(largest, s.textCount())
	}
	if len(list) < 2 || all-largest <= largest/settledShare {
		return false
	}
	x.mergeRange(list, 0)
	return true
}

// mergeRange replaces segments, of which the first is the given one, by one. x.writing is held.
func (x *Index) mergeRange(list []*segment, first int) {
	merged := x.mergeSegments(list)
	x.mu.Lock()
	defer x.mu.Unlock()
	// Searches may have added segments behind these, and Save moved some to files.
	for _, s := range x.segments[first : first+len(list)] {
		s.release()
		x.names.freeName(s.file.Name)
	}
	x.segments = slices.Concat(x.segments[:first], []*segment{merged}, x.segments[first+len(list):])
}

// largeMerge is how many texts are merged in a file rather than in memory.
const largeMerge = 1 << 16

// mergeSegments returns one segment of several. A large one is in a file at once.
func (x *Index) mergeSegments(list []*segment) *segment {
	texts := uint32(0)
	for _, s := range list {
		texts += s.textCount()
	}
	if x.dir != "" && texts >= largeMerge {
		if s, err := x.mergeInFile(list); err == nil {
			return s
		} // the next Save tells of a disk that is full
	}
	return writeSegment(func(w *segmentWriter) { mergeInto(w, list, nil) })
}
