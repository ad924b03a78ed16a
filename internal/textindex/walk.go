package textindex

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"koine/kg"
)

// A search walks the subjects in their order, by windows in which each list of postings has one
// block. A window whose words cannot make a hit together is skipped without reading its
// postings (block-max MaxScore). Bounds are computed from impacts with the caller's statistics;
// texts of others, and removed ones, can only make them larger, and a score is never computed
// from a bound.

// slack makes bounds larger than what rounding may add to a sum of scores.
const slack = 1 + 1e-9

// wordCursor walks the subjects with a word, in all segments.
type wordCursor struct {
	idf     float64
	most    float64 // by weight: decides the order of words, in which scores are added up
	bound   float64 // no text has more for the word
	blocks  uint64  // of postings
	cursors []formCursor

	misspelt bool // the terms are of similar words

	window windowBound
	best   float64 // of the subject under evaluation
}

// windowBound is the bound of texts of subjects up to an order.
type windowBound struct {
	known bool
	until uint64 // the last order
	bound float64
	blockFlags
}

// formCursor walks the texts with a term in a segment. It reads a block of postings at a time.
type formCursor struct {
	postings
	part   *part
	weight float64

	done    bool
	loaded  uint32 // the block that is read
	docs    []uint32
	times   []uint32 // how often the term is in each
	numbers []uint32 // of their subjects
	orders  []uint64 // of their subjects
	i       int      // of the current text

	all    windowBound // of all texts
	sparse bool        // the postings are read, rather than skipped by blocks
	near   uint32      // the block of the window
	block  windowBound
}

// loadBlock reads a block and moves to its first text.
func (f *formCursor) loadBlock(n uint32) {
	f.loaded, f.i, f.docs, f.times, f.numbers, f.orders = n, 0, f.docs[:0], f.times[:0], f.numbers[:0], f.orders[:0]
	at := cursor{postings: f.postings}
	at.openBlock(n)
	for len(at.rest) > 0 {
		at.nextText()
		number := at.doc
		if !f.part.single {
			number = f.s.subjectOf(at.doc)
		}
		f.docs, f.times, f.numbers = append(f.docs, at.doc), append(f.times, at.times), append(f.numbers, number)
		f.orders = append(f.orders, f.s.orders.valueAt(number))
	}
}

// order returns the order of the current subject.
func (f *formCursor) order() uint64 { return f.orders[f.i] }

// subject returns the current subject.
func (f *formCursor) subject() Subject {
	return Subject{f.orders[f.i], f.s.named.idAt(f.numbers[f.i])}
}

// spot is a subject, by its number in a segment or, with none, by its id, which is read where
// orders are equal.
type spot struct {
	order  uint64
	s      *segment
	number uint32
	id     kg.ID
}

func spotOf(t Subject) spot { return spot{order: t.Order, id: t.ID} }

// spot returns the current subject.
func (f *formCursor) spot() spot { return spot{order: f.orders[f.i], s: f.s, number: f.numbers[f.i]} }

func (t *spot) subject() Subject {
	if t.s == nil {
		return Subject{t.order, t.id}
	}
	return Subject{t.order, t.s.named.idAt(t.number)}
}

// compareSpot compares the current subject with another.
func (f *formCursor) compareSpot(t *spot) int {
	switch order := f.orders[f.i]; {
	case order != t.order:
		return cmp.Compare(order, t.order)
	case f.s == t.s:
		return cmp.Compare(f.numbers[f.i], t.number)
	}
	return f.subject().compareTo(t.subject())
}

// isAt reports whether a subject is the current one.
func (f *formCursor) isAt(t *spot) bool {
	return !f.done && f.orders[f.i] == t.order && f.compareSpot(t) == 0
}

// textsEnd returns where in the block the texts of the current subject end. A block has all
// texts of a subject.
func (f *formCursor) textsEnd() int {
	end := f.i + 1
	for end < len(f.docs) && f.numbers[end] == f.numbers[f.i] {
		end++
	}
	return end
}

// passTexts moves behind the texts of the current subject.
func (f *formCursor) passTexts() {
	if f.i = f.textsEnd(); f.i == len(f.docs) {
		f.nextBlock()
	}
}

func (f *formCursor) nextBlock() {
	if f.loaded+1 >= f.blockCount() {
		f.done = true
		return
	}
	f.loadBlock(f.loaded + 1)
}

// seekSubject moves to the first subject that is not before t.
func (f *formCursor) seekSubject(t *spot) {
	if f.done {
		return
	}
	if f.orders[len(f.orders)-1] < t.order {
		n := f.blockWith(t.order, f.loaded)
		if n == f.blockCount() {
			f.done = true
			return
		}
		f.loadBlock(n)
	}
	for steps := 0; f.orders[f.i] < t.order; f.i++ { // the last order is not before t's
		if steps++; steps == 8 {
			n, _ := slices.BinarySearch(f.orders[f.i:], t.order)
			f.i += n
			break
		}
	}
	for !f.done && f.orders[f.i] == t.order && f.compareSpot(t) < 0 {
		f.passTexts()
	}
}

// blockWith returns the first block from one on whose last order is not before an order; the
// number of blocks if there is none.
func (f *formCursor) blockWith(order uint64, from uint32) uint32 {
	count := f.blockCount()
	if len(f.blocks) == 0 {
		if f.orders[len(f.orders)-1] < order {
			return count
		}
		return 0
	}
	low, high, step := from, from, uint32(1) // no block before low has the order
	for high < count && f.lastOrderOf(high) < order {
		low, high, step = high+1, high+step, 2*step
	}
	for high = min(high, count); low < high; {
		if middle := (low + high) / 2; f.lastOrderOf(middle) < order {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// scoreOf returns the score of a text with a form of a word.
func (s *searcher) scoreOf(w *wordCursor, weight float64, times, length uint32) float64 {
	tf := float64(times)
	return weight * w.idf * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(length)/s.average))
}

// boundOf returns a bound of the scores of texts with some impacts.
func (s *searcher) boundOf(w *wordCursor, weight float64, impacts []byte) (most float64) {
	eachImpact(impacts, func(x impact) { most = max(most, s.scoreOf(w, weight, x.times, x.length)) })
	return most * slack
}

// boundWord computes the bounds of a word's cursors.
func (s *searcher) boundWord(w *wordCursor) {
	for i := range w.cursors {
		f := &w.cursors[i]
		f.all = windowBound{known: true, until: math.MaxUint64}
		if len(f.blocks) > 0 {
			f.all.bound, f.all.blockFlags = s.boundOf(w, f.weight, f.whole), f.flags
		} else {
			f.all.blockFlags = blockFlags{true, true}
			for i, doc := range f.docs {
				f.all.bound = max(f.all.bound, s.scoreOf(w, f.weight, f.times[i], uint32(f.s.length.valueAt(doc)))*slack)
			}
		}
		w.blocks += uint64(f.blockCount())
	}
	w.bound = w.boundSubject(func(f *formCursor) windowBound { return f.all })
}

// manyCursors is how many cursors boundSubject compares by pairs.
const manyCursors = 16

// boundSubject returns a bound of what subjects have for the word, with bounds of the texts at
// each cursor: the best of one text, and a part of the best of another. Another text is at
// the same cursor only if a subject has the term in several texts, and at one of the same
// segment only if a subject has several texts.
func (c *wordCursor) boundSubject(of func(*formCursor) windowBound) (most float64) {
	if len(c.cursors) > manyCursors {
		for i := range c.cursors {
			most = max(most, of(&c.cursors[i]).bound)
		}
		return most * (1 + againWeight)
	}
	var list [manyCursors]windowBound
	for i := range c.cursors {
		list[i] = of(&c.cursors[i])
	}
	for i := range c.cursors {
		best, again := &list[i], 0.0
		if best.bound == 0 {
			continue
		}
		if best.repeats {
			again = best.bound
		}
		for j := range c.cursors {
			other := &list[j]
			if j != i && other.bound > again && (c.cursors[i].s != c.cursors[j].s || best.several && other.several) {
				again = other.bound
			}
		}
		most = max(most, best.bound+againWeight*min(again, best.bound))
	}
	return most
}

// seekSubject moves every cursor to the first subject that is not before t.
func (c *wordCursor) seekSubject(t *spot) {
	for i := range c.cursors {
		if f := &c.cursors[i]; !f.done && f.orders[f.i] <= t.order {
			f.seekSubject(t)
		}
	}
}

// passSubject moves every cursor behind a subject.
func (c *wordCursor) passSubject(t *spot) {
	for i := range c.cursors {
		if f := &c.cursors[i]; f.isAt(t) {
			f.passTexts()
		}
	}
}

// nextCandidate returns the first subject at a cursor of the words.
func (s *searcher) nextCandidate(list []*wordCursor) (next spot, found bool) {
	for _, w := range list {
		for i := range w.cursors {
			f := &w.cursors[i]
			if !f.done && (!found || f.orders[f.i] < next.order || f.orders[f.i] == next.order && f.compareSpot(&next) < 0) {
				next, found = f.spot(), true
			}
		}
	}
	return next, found
}

// sparsely is how often the postings of a sparse cursor may outnumber all blocks.
const sparsely = 4

// findHits walks the subjects and returns the best.
func (s *searcher) findHits() ([]Hit, error) {
	blocks := uint64(0)
	for _, w := range s.words {
		s.boundWord(w)
		blocks += w.blocks
	}
	for _, w := range s.words {
		for i := range w.cursors {
			w.cursors[i].sparse = uint64(w.cursors[i].blockCount())*blockSize <= sparsely*blocks
		}
	}
	s.byBound = slices.Clone(s.words)
	slices.SortFunc(s.byBound, func(a, b *wordCursor) int {
		if a.bound < b.bound {
			return -1
		}
		return 1
	})
	s.byWindow = slices.Clone(s.byBound)
	for from, windows := uint64(0), 0; ; windows++ {
		if windows%256 == 0 && s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		at, found := s.nextOrder(from)
		if !found {
			break
		}
		end := s.enterWindow(at)
		if err := s.searchWindow(at, end); err != nil {
			return nil, err
		}
		if end == math.MaxUint64 {
			break
		}
		from = end + 1
	}
	out := []Hit(s.hits)
	slices.SortFunc(out, func(a, b Hit) int {
		if a.ComesBefore(b.Place) {
			return -1
		}
		return 1
	})
	return out, nil
}

// countOptional returns how many of the first words cannot make a hit together.
func (s *searcher) countOptional(list []*wordCursor, bound func(*wordCursor) float64) int {
	least := 0.0
	if len(s.hits) >= s.request.First {
		least = s.hits[0].Score
	}
	sum := 0.0
	for i, w := range list {
		if sum += bound(w); sum >= least && sum > 0 {
			return i
		}
	}
	return len(list)
}

// nextOrder returns an order from the given one on before which no subject is a hit.
func (s *searcher) nextOrder(from uint64) (next uint64, found bool) {
	optional := s.countOptional(s.byBound, func(w *wordCursor) float64 { return w.bound })
	for _, w := range s.byBound[optional:] {
		for i := range w.cursors {
			f := &w.cursors[i]
			if f.sparse && !f.done && f.order() < from {
				f.seekSubject(&spot{order: from})
			}
			if f.done || f.block.known && f.near == f.blockCount() {
				continue
			}
			if at := max(f.order(), from); !found || at < next {
				next, found = at, true
			}
		}
	}
	return next, found
}

// enterWindow moves to the window that begins at an order, and returns the last order of it.
func (s *searcher) enterWindow(from uint64) (until uint64) {
	until = math.MaxUint64
	for _, w := range s.words {
		if !w.window.known || w.window.until < from {
			w.window = windowBound{known: true, until: math.MaxUint64}
			w.window.bound = w.boundSubject(func(f *formCursor) windowBound {
				of := f.enterBlock(s, w, from)
				w.window.until = min(w.window.until, of.until)
				return of
			})
		}
		until = min(until, w.window.until)
	}
	slices.SortFunc(s.byWindow, func(a, b *wordCursor) int {
		if a.window.bound < b.window.bound {
			return -1
		}
		return 1
	})
	return until
}

// enterBlock returns the bound of the block that has the first subject from an order on.
func (f *formCursor) enterBlock(s *searcher, w *wordCursor, from uint64) windowBound {
	switch {
	case f.done:
		return windowBound{until: math.MaxUint64}
	case f.sparse && f.order() > from:
		return windowBound{until: f.order() - 1}
	case f.block.known && f.block.until >= from:
		return f.block
	case len(f.blocks) == 0:
		f.block = f.all
		return f.block
	}
	f.near = f.blockWith(from, f.near)
	f.block = windowBound{known: true, until: math.MaxUint64}
	if f.near < f.blockCount() {
		f.block.until, f.block.bound = f.lastOrderOf(f.near), s.boundOf(w, f.weight, f.impactsOf(f.near))
		f.block.blockFlags = f.flagsOf(f.near)
	}
	return f.block
}

// lastOrderOf returns the order of the last subject of a block.
func (f *formCursor) lastOrderOf(block uint32) uint64 {
	return f.s.orders.valueAt(f.s.subjectOf(f.lastOf(block)))
}

// searchWindow evaluates the subjects of a window that may be hits.
func (s *searcher) searchWindow(from, until uint64) error {
	bound := func(w *wordCursor) float64 { return w.window.bound }
	optional := s.countOptional(s.byWindow, bound)
	for _, w := range s.byWindow[optional:] {
		w.seekSubject(&spot{order: from})
	}
	for step := 1; ; step++ {
		next, found := s.nextCandidate(s.byWindow[optional:])
		if !found || next.order > until {
			return nil
		}
		if step%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if s.mayBeHit(&next, optional) {
			hit, err := s.evaluateSubject(&next)
			if err != nil {
				return err
			}
			if hit != nil {
				heap.Push(&s.hits, *hit)
				if len(s.hits) > s.request.First {
					heap.Pop(&s.hits)
				}
			}
		}
		for _, w := range s.byWindow[optional:] {
			w.passSubject(&next)
		}
		optional = max(optional, s.countOptional(s.byWindow, bound))
	}
}

// mayBeHit reports whether a subject, at which the words of the window behind the optional
// ones are, may be among the first hits.
func (s *searcher) mayBeHit(subject *spot, optional int) bool {
	if len(s.hits) < s.request.First {
		return true
	}
	sum := 0.0
	for _, w := range s.byWindow[:optional] {
		w.best = w.window.bound
		sum += w.best
	}
	for _, w := range s.byWindow[optional:] {
		w.best = s.bestOf(w, subject)
		sum += w.best
	}
	for i := optional - 1; i >= 0; i-- {
		if sum*slack < s.hits[0].Score {
			return false
		}
		w := s.byWindow[i]
		w.seekSubject(subject)
		sum -= w.best
		w.best = s.bestOf(w, subject)
		sum += w.best
	}
	sum = s.sumOfBest()
	return sum >= s.hits[0].Score && s.isWanted(Place{sum, subject.subject()})
}

// sumOfBest adds up what the words have for a subject, in the order in which a hit's score is
// added up.
func (s *searcher) sumOfBest() (sum float64) {
	for _, w := range s.words {
		sum += w.best
	}
	return sum
}

// bestOf returns what the texts of a subject, at which the word's cursors are, have for the word
// if all are shown. Equal texts of several statements count as several.
func (s *searcher) bestOf(w *wordCursor, subject *spot) float64 {
	var best, again float64
	var of textAt
	for i := range w.cursors {
		f := &w.cursors[i]
		if !f.isAt(subject) {
			continue
		}
		for i, end := f.i, f.textsEnd(); i < end; i++ {
			doc := f.docs[i]
			if !f.isSearchedAt(doc) {
				continue
			}
			score := s.scoreOf(w, f.weight, f.times[i], uint32(f.s.length.valueAt(doc)))
			switch at := (textAt{f.part, doc}); {
			case at == of:
				best = max(best, score)
			case score > best:
				again, best, of = best, score, at
			default:
				again = max(again, score)
			}
		}
	}
	return best + againWeight*again
}

// isSearchedAt reports whether a text was not removed and is of a group that is searched.
func (f *formCursor) isSearchedAt(doc uint32) bool {
	return f.part.all || !f.s.isRemoved(doc) && f.part.searched[f.s.groupOf(doc)]
}
