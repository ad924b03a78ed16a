package textindex

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"math"
	"slices"
)

// A search walks the subjects in their order, by windows in which each list of postings has one
// block. A window whose words cannot make a hit together is skipped without reading its
// postings (block-max MaxScore). Bounds are computed from impacts with the caller's statistics;
// texts of others, and removed ones, can only make them larger, and a score is never computed
// from a bound. Bounds are added up in the order of scores, so that rounding makes no sum of
// scores larger than that of bounds; and because subjects come in their order, one with a bound equal
// to the score of the last hit is none.

// slack makes a bound larger than the same one, rounded in another order.
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
	best   float64 // of the subject under evaluation, or a bound of it
}

// windowBound is the bound of texts of subjects up to a rank.
type windowBound struct {
	known bool
	until uint64 // the last rank
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
	ranks   []uint64 // of their subjects
	scores  []float64
	i       int // of the current text
	strong  int // no text from the current one to before it is strong: see nextStrong
	known   *knownScores

	all    windowBound // of all texts
	sparse bool        // the postings are read, rather than skipped by blocks
	near   uint32      // the block of the window
	block  windowBound
	now    windowBound // in the window
	again  float64     // a bound of another text's score beside one at the cursor
}

// knownScores are the scores of short texts by how often they have the term, less one, and by
// their lengths; 0 for those that are not computed yet.
type knownScores [2][64]float64

// loadBlock reads a block and moves to its first text.
func (f *formCursor) loadBlock(n uint32) {
	f.loaded, f.i, f.strong, f.scores = n, 0, 0, f.scores[:0]
	f.docs, f.times, f.numbers, f.ranks = f.docs[:0], f.times[:0], f.numbers[:0], f.ranks[:0]
	data, doc := f.dataOf(n), uint32(0)
	for i := 0; i < len(data); {
		head, times := uint64(data[i]), uint64(1)
		if i++; head >= 0x80 {
			var size int
			head, size = binary.Uvarint(data[i-1:])
			i += size - 1
		}
		if head&1 != 0 {
			var size int
			times, size = binary.Uvarint(data[i:])
			i += size
		}
		for left := times; left > 0; i++ { // positions
			if data[i] < 0x80 {
				left--
			}
		}
		doc += uint32(head >> 1)
		f.docs, f.times = append(f.docs, doc), append(f.times, uint32(times))
	}
	if f.part.single {
		f.numbers = append(f.numbers, f.docs...)
	} else {
		for _, doc := range f.docs {
			f.numbers = append(f.numbers, f.s.subjectOf(doc))
		}
	}
	f.ranks = f.part.appendRanks(f.ranks, f.numbers)
}

// A rank is a number in the order of subjects: one with a lower rank is before one with a higher,
// and those of two segments with equal ranks are compared. The order of a subject is a rank, but
// to read it is a jump in memory. Where nearly all texts are in one segment, the numbers of subjects
// there give the ranks, and the few others are looked up between them.

// largeShare is the part of the texts that may be outside the segment that gives ranks.
const largeShare = settledShare

// openRanks chooses the segment that gives ranks, if there is one.
func (s *searcher) openRanks() {
	var all uint64
	var largest *segment
	for _, p := range s.parts {
		n := p.textCount()
		if all += uint64(n); largest == nil || n > largest.textCount() {
			largest = p.segment
		}
	}
	if largest == nil || (all-uint64(largest.textCount()))*largeShare > all {
		return
	}
	s.large = largest
	for _, p := range s.parts {
		p.large = largest
	}
}

// appendRanks appends the ranks of subjects, in the order of their numbers.
func (p *part) appendRanks(ranks []uint64, numbers []uint32) []uint64 {
	switch p.large {
	case nil:
		for _, n := range numbers {
			ranks = append(ranks, p.orders.valueAt(n))
		}
	case p.segment:
		for _, n := range numbers {
			ranks = append(ranks, uint64(n)*2+1)
		}
	default:
		low := uint32(0)
		for _, n := range numbers {
			var rank uint64
			rank, low = rankIn(p.large, p.subjectAt(n), low)
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// rankOf returns the rank of a subject of the part.
func (p *part) rankOf(number uint32) uint64 {
	switch p.large {
	case nil:
		return p.orders.valueAt(number)
	case p.segment:
		return uint64(number)*2 + 1
	}
	rank, _ := rankIn(p.large, p.subjectAt(number), 0)
	return rank
}

// rankIn returns the rank of a subject by the numbers of a segment: an even one if it is not there.
// The subject is not before the one with number low; the next may be looked for from at on.
func rankIn(large *segment, t Subject, low uint32) (rank uint64, at uint32) {
	at = large.findSubject(t, low, large.subjectCount())
	if at < large.subjectCount() && large.subjectAt(at) == t {
		return uint64(at)*2 + 1, at
	}
	return uint64(at) * 2, at
}

// rank returns the rank of the current subject.
func (f *formCursor) rank() uint64 { return f.ranks[f.i] }

// subject returns the current subject.
func (f *formCursor) subject() Subject { return f.s.subjectAt(f.numbers[f.i]) }

// spot is a subject, by its number in a segment or as it is; or the place before all subjects of a
// rank.
type spot struct {
	rank   uint64
	s      *segment
	number uint32
	of     *Subject
}

// spotOf returns the spot of a subject, which may be in no segment.
func (s *searcher) spotOf(t Subject) spot {
	at := spot{rank: t.Order, of: &t}
	if s.large != nil {
		at.rank, _ = rankIn(s.large, t, 0)
	}
	return at
}

// spot returns the current subject.
func (f *formCursor) spot() spot { return spot{rank: f.ranks[f.i], s: f.s, number: f.numbers[f.i]} }

func (t *spot) subject() Subject {
	if t.s == nil {
		return *t.of
	}
	return t.s.subjectAt(t.number)
}

// compareSpot compares the current subject with a spot.
func (f *formCursor) compareSpot(t *spot) int {
	switch rank := f.ranks[f.i]; {
	case rank != t.rank:
		return cmp.Compare(rank, t.rank)
	case f.s == t.s:
		return cmp.Compare(f.numbers[f.i], t.number)
	case t.s == nil && t.of == nil:
		return 1
	}
	return f.subject().compareTo(t.subject())
}

// isAt reports whether a subject is the current one.
func (f *formCursor) isAt(t *spot) bool {
	return !f.done && f.ranks[f.i] == t.rank && f.compareSpot(t) == 0
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
	if f.ranks[len(f.ranks)-1] < t.rank {
		n := f.blockWith(t.rank, f.loaded)
		if n == f.blockCount() {
			f.done = true
			return
		}
		f.loadBlock(n)
	}
	for steps := 0; f.ranks[f.i] < t.rank; f.i++ { // the last rank is not before t's
		if steps++; steps == 8 {
			n, _ := slices.BinarySearch(f.ranks[f.i:], t.rank)
			f.i += n
			break
		}
	}
	for !f.done && f.ranks[f.i] == t.rank && f.compareSpot(t) < 0 {
		f.passTexts()
	}
}

// blockWith returns the first block from one on that does not end before a rank; the number of
// blocks if there is none.
func (f *formCursor) blockWith(rank uint64, from uint32) uint32 {
	count := f.blockCount()
	if len(f.blocks) == 0 {
		if f.ranks[len(f.ranks)-1] < rank {
			return count
		}
		return 0
	}
	low, high, step := from, from, uint32(1) // no block before low has the rank
	for high < count && f.lastRankOf(high) < rank {
		low, high, step = high+1, high+step, 2*step
	}
	for high = min(high, count); low < high; {
		if middle := (low + high) / 2; f.lastRankOf(middle) < rank {
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

// scoreWith returns the score of a text with the term of a cursor.
func (s *searcher) scoreWith(w *wordCursor, f *formCursor, times, length uint32) float64 {
	if times > uint32(len(f.known)) || length >= uint32(len(f.known[0])) {
		return s.scoreOf(w, f.weight, times, length)
	}
	if f.known == nil {
		f.known = &knownScores{}
	}
	known := &f.known[times-1][length]
	if *known == 0 {
		*known = s.scoreOf(w, f.weight, times, length)
	}
	return *known
}

// scoreBlock computes the scores of the block that is read.
func (s *searcher) scoreBlock(w *wordCursor, f *formCursor) {
	for i := len(f.scores); i < len(f.docs); i++ {
		f.scores = append(f.scores, s.scoreWith(w, f, f.times[i], uint32(f.s.length.valueAt(f.docs[i]))))
	}
}

// boundOf returns a bound of the scores of texts with some impacts.
func (s *searcher) boundOf(w *wordCursor, f *formCursor, impacts []byte) (most float64) {
	for len(impacts) > 0 {
		var times, length uint64
		times, impacts = uvarint(impacts)
		length, impacts = uvarint(impacts)
		most = max(most, s.scoreWith(w, f, uint32(times), uint32(length)))
	}
	return most
}

// boundWord computes the bounds of a word's cursors.
func (s *searcher) boundWord(w *wordCursor) {
	for i := range w.cursors {
		f := &w.cursors[i]
		f.all = windowBound{known: true, until: math.MaxUint64}
		if len(f.blocks) > 0 {
			f.all.bound, f.all.blockFlags = s.boundOf(w, f, f.whole), f.flags
		} else {
			f.all.blockFlags = blockFlags{!f.part.single, !f.part.single}
			s.scoreBlock(w, f)
			f.all.bound = slices.Max(f.scores)
		}
		w.blocks += uint64(f.blockCount())
	}
	w.bound = w.boundSubject(func(f *formCursor) windowBound { return f.all })
}

// manyCursors is how many cursors are compared by pairs.
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
		return most + againWeight*most
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
		if f := &c.cursors[i]; !f.done && f.ranks[f.i] <= t.rank {
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
			if !f.done && (!found || f.ranks[f.i] < next.rank || f.ranks[f.i] == next.rank && f.compareSpot(&next) < 0) {
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
		at, found := s.nextRank(from)
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

// manyWords is how many words have bounds that are not added up anew for each part of them.
const manyWords = 8

// countOptional returns how many of the first words cannot make a hit together.
func (s *searcher) countOptional(list []*wordCursor, bound func(*wordCursor) float64) int {
	least := 0.0
	if len(s.hits) >= s.request.First {
		least = s.hits[0].Score
	}
	sum := 0.0
	for i, w := range list {
		if sum += bound(w); i == 0 && sum > least {
			return 0
		}
		if i > 0 && sum*slack > least && (len(list) > manyWords || s.sumOf(list[:i+1], bound) > least) {
			return i
		}
	}
	return len(list)
}

// sumOf adds up the bounds of some words in the order in which a hit's score is added up.
func (s *searcher) sumOf(list []*wordCursor, bound func(*wordCursor) float64) (sum float64) {
	for _, w := range s.words {
		if slices.Contains(list, w) {
			sum += bound(w)
		}
	}
	return sum
}

// nextRank returns a rank from the given one on before which no subject is a hit.
func (s *searcher) nextRank(from uint64) (next uint64, found bool) {
	optional := s.countOptional(s.byBound, func(w *wordCursor) float64 { return w.bound })
	for _, w := range s.byBound[optional:] {
		for i := range w.cursors {
			f := &w.cursors[i]
			if f.sparse && !f.done && f.rank() < from {
				f.seekSubject(&spot{rank: from})
			}
			if f.done || f.block.known && f.near == f.blockCount() {
				continue
			}
			if at := max(f.rank(), from); !found || at < next {
				next, found = at, true
			}
		}
	}
	return next, found
}

// enterWindow moves to the window that begins at a rank, and returns the last rank of it.
func (s *searcher) enterWindow(from uint64) (until uint64) {
	until = math.MaxUint64
	for _, w := range s.words {
		if !w.window.known || w.window.until < from {
			w.window = windowBound{known: true, until: math.MaxUint64}
			w.window.bound = w.boundSubject(func(f *formCursor) windowBound {
				of := f.enterBlock(s, w, from)
				f.now = of
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

// enterBlock returns the bound of the block that has the first subject from a rank on.
func (f *formCursor) enterBlock(s *searcher, w *wordCursor, from uint64) windowBound {
	switch {
	case f.done:
		return windowBound{until: math.MaxUint64}
	case f.sparse && f.rank() > from:
		return windowBound{until: f.rank() - 1}
	case f.block.known && f.block.until >= from:
		return f.block
	case len(f.blocks) == 0:
		f.block = f.all
		return f.block
	}
	f.near = f.blockWith(from, f.near)
	f.block = windowBound{known: true, until: math.MaxUint64}
	if f.near < f.blockCount() {
		f.block.until, f.block.bound = f.lastRankOf(f.near), s.boundOf(w, f, f.impactsOf(f.near))
		f.block.blockFlags = f.flagsOf(f.near)
	}
	return f.block
}

// lastRankOf returns the rank of the last subject of a block.
func (f *formCursor) lastRankOf(block uint32) uint64 {
	number := f.lastOf(block)
	if !f.part.single {
		number = f.s.subjectOf(number)
	}
	return f.part.rankOf(number)
}

// searchWindow evaluates the subjects of a window that may be hits.
func (s *searcher) searchWindow(from, until uint64) error {
	bound := func(w *wordCursor) float64 { return w.window.bound }
	optional := s.countOptional(s.byWindow, bound)
	for _, w := range s.byWindow[optional:] {
		w.seekSubject(&spot{rank: from})
	}
	if optional+1 == len(s.byWindow) {
		s.byWindow[optional].expectStrong()
	}
	for step, before := 1, optional; ; step++ {
		if optional > before && optional+1 == len(s.byWindow) {
			s.byWindow[optional].expectStrong()
		}
		before = optional
		var next spot
		var found bool
		if optional+1 == len(s.byWindow) && len(s.hits) >= s.request.First {
			next, found = s.nextStrong(s.byWindow[optional], optional, until)
		} else {
			next, found = s.nextCandidate(s.byWindow[optional:])
		}
		if !found || next.rank > until {
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
				optional = max(optional, s.countOptional(s.byWindow, bound))
			}
		}
		for _, w := range s.byWindow[optional:] {
			w.passSubject(&next)
		}
	}
}

// expectStrong bounds the scores that other texts of a subject may add to those at each cursor, by
// the bounds of the window.
func (c *wordCursor) expectStrong() {
	for i := range c.cursors {
		f := &c.cursors[i]
		if f.strong, f.again = f.i, 0; len(c.cursors) > manyCursors {
			f.again = c.window.bound
			continue
		}
		if f.now.repeats {
			f.again = f.now.bound
		}
		for j := range c.cursors {
			if other := &c.cursors[j]; j != i && (f.s != other.s || f.now.several && other.now.several) {
				f.again = max(f.again, other.now.bound)
			}
		}
	}
}

// nextStrong moves to the first subject up to a rank that has enough for a word to be a hit with
// the optional words. The cursors of the word are in the window.
func (s *searcher) nextStrong(w *wordCursor, optional int, until uint64) (next spot, found bool) {
	enough := s.hits[0].Score / slack
	for _, o := range s.byWindow[:optional] {
		enough -= o.window.bound
	}
	for {
		last := uint64(math.MaxUint64) // up to which everything is read
		for i := range w.cursors {
			f := &w.cursors[i]
			if f.done || f.ranks[f.i] > until {
				continue
			}
			s.scoreBlock(w, f)
			need := max(enough-againWeight*f.again, enough/(1+againWeight))
			at := max(f.strong, f.i)
			for at < len(f.scores) && f.scores[at] < need {
				at++
			}
			if f.strong = at; at == len(f.scores) {
				last = min(last, f.ranks[at-1])
			} else if rank := f.ranks[at]; rank <= until && (!found || rank < next.rank || rank == next.rank && f.isBefore(at, &next)) {
				next, found = spot{rank: rank, s: f.s, number: f.numbers[at]}, true
			}
		}
		if found && next.rank <= last {
			w.seekSubject(&next)
			return next, true
		}
		if last >= until {
			return spot{}, false
		}
		found = false
		w.seekSubject(&spot{rank: last + 1})
	}
}

// isBefore reports whether the subject of a text in the block is before a spot of equal rank.
func (f *formCursor) isBefore(i int, t *spot) bool {
	at := *f
	at.i = i
	return at.compareSpot(t) < 0
}

// mayBeHit reports whether a subject, at which the words of the window behind the optional
// ones are, may be among the first hits.
func (s *searcher) mayBeHit(subject *spot, optional int) bool {
	if len(s.hits) < s.request.First {
		return true
	}
	for _, w := range s.byWindow[:optional] {
		w.best = w.window.bound
	}
	for _, w := range s.byWindow[optional:] {
		w.best = s.bestOf(w, subject)
	}
	for i := optional - 1; i >= 0; i-- {
		if s.sumOfBest() <= s.hits[0].Score {
			return false
		}
		w := s.byWindow[i]
		w.seekSubject(subject)
		w.best = s.bestOf(w, subject)
	}
	return s.sumOfBest() > s.hits[0].Score
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
		s.scoreBlock(w, f)
		for i, end := f.i, f.textsEnd(); i < end; i++ {
			doc := f.docs[i]
			if !f.isSearchedAt(doc) {
				continue
			}
			score := f.scores[i]
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
