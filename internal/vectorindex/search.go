package vectorindex

import (
	"context"
	"math"
	"slices"
)

// Metric is how vectors are compared.
type Metric int

// The metrics: the cosine of the angle, or the dot product.
const (
	Cosine Metric = iota
	Dot
)

// Request is a search under the rights of a caller.
type Request struct {
	Rights
	Model  string
	Vector []float32 // finite numbers
	Metric Metric
	First  int
	// After is the last hit of the page before.
	After *Place
}

// Hit is a subject with the vector of it that is nearest.
type Hit struct {
	Place
	Key Key
}

// Search returns the first hits of a request: the subjects by the score of their nearest vector.
func (x *Index) Search(ctx context.Context, r *Request) ([]Hit, error) {
	if r.First < 1 {
		return nil, nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := &searcher{ctx: ctx, request: r, query: newQuery(r.Vector), best: map[Subject]*Hit{}}
	if r.After != nil {
		s.before = map[Subject]bool{}
		if err := s.scanChunks(x.chunks[len(r.Vector)], s.isNotAfter, s.noteBefore); err != nil {
			return nil, err
		}
	}
	if err := s.scanChunks(x.chunks[len(r.Vector)], s.mayBeHit, s.addHit); err != nil {
		return nil, err
	}
	out := make([]Hit, len(s.hits))
	for i, h := range s.hits {
		out[i] = *h
	}
	return out, nil
}

// searcher is a search under way.
type searcher struct {
	ctx     context.Context
	request *Request
	query   *query
	before  map[Subject]bool // of the pages before
	hits    []*Hit           // the best first
	best    map[Subject]*Hit // the same by subject
}

// candidate is a row with the highest score that its codes allow: they order by the score.
type candidate uint64

// newCandidate rounds the score up.
func newCandidate(row int, highest float64) candidate {
	bits := math.Float32bits(math.Nextafter32(float32(highest), float32(math.Inf(1))))
	if bits>>31 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 31
	}
	return candidate(bits)<<32 | candidate(row)
}

func (c candidate) row() int { return int(uint32(c)) }

func (c candidate) highest() float64 {
	bits := uint32(c >> 32)
	if bits>>31 == 1 {
		bits &^= 1 << 31
	} else {
		bits = ^bits
	}
	return float64(math.Float32frombits(bits))
}

// blockRows is how many rows are compared at a time.
const blockRows = 256

// scanChunks calls add with the vectors that the caller sees and that have a highest score that
// may count. Their order depends on hidden vectors; the result of add must not.
func (s *searcher) scanChunks(list []*chunk, mayCount func(highest float64) bool, add func(h Hit)) error {
	var dots [blockRows]int32
	var found []candidate
	var k Key // one for all, because Shown gets a pointer
	readable := s.request.readGroups()
	for _, c := range list {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		open := readable(c)
		for i, g := range c.groups {
			open[i] = open[i] && g.model == s.request.Model
		}
		found = found[:0]
		for low, rows := 0, c.countRows(); low < rows; {
			high := low
			for high < rows && high-low < blockRows && open[c.groupNumber(high)] {
				high++
			}
			dotRows(s.query.codes, c.codes[low*c.stride:high*c.stride], dots[:high-low])
			for row := low; row < high; row++ {
				if highest := s.highestScore(dots[row-low], c.boundAt(row)); mayCount(highest) {
					found = append(found, newCandidate(row, highest))
				}
			}
			if low = high; low < rows && !open[c.groupNumber(low)] {
				low++
			}
		}
		// The best come first, so that the fewest are computed exactly.
		slices.Sort(found)
		for _, f := range slices.Backward(found) {
			if !mayCount(f.highest()) {
				break
			}
			row := f.row()
			if c.isRemoved(row) {
				continue
			}
			k = c.keyAt(row)
			if shown, err := s.request.shows(&k); err != nil {
				return err
			} else if shown {
				score := s.query.exactScore(c.vectorAt(row), s.request.Metric)
				add(Hit{Place: Place{Score: score, Subject: k.Subject}, Key: k})
			}
		}
	}
	return nil
}

// tinyNorm and hugeNorm are the lengths beyond which the codes of a vector say nothing, because
// 32 bits do not hold their scale and bound with enough digits.
const (
	tinyNorm = 1e-30
	hugeNorm = 1e30
)

// highestScore returns the most that the score of a vector can be.
func (s *searcher) highestScore(dot int32, b bound) float64 {
	norms := s.query.norm * float64(b.norm)
	switch s.request.Metric {
	case Dot:
		if b.norm > hugeNorm {
			return math.Inf(1)
		}
		return s.query.highestDot(dot, b)
	default:
		if b.norm < tinyNorm || b.norm > hugeNorm || norms == 0 {
			return 1
		}
		return s.query.highestDot(dot, b) / norms
	}
}

// isNotAfter reports whether a score may be that of a page before.
func (s *searcher) isNotAfter(highest float64) bool { return highest >= s.request.After.Score }

// noteBefore notes the subject of a vector that was on a page before.
func (s *searcher) noteBefore(h Hit) {
	if !s.request.After.ComesBefore(h.Place) {
		s.before[h.Subject] = true
	}
}

// mayBeHit reports whether a score may be that of a hit.
func (s *searcher) mayBeHit(highest float64) bool {
	return len(s.hits) < s.request.First || highest >= s.hits[len(s.hits)-1].Score
}

// addHit adds a vector to the hits if it is one of them.
func (s *searcher) addHit(h Hit) {
	if s.before[h.Subject] {
		return
	}
	if old := s.best[h.Subject]; old != nil {
		if old.Score > h.Score || old.Score == h.Score && old.Key.Owner <= h.Key.Owner {
			return
		}
		s.hits = slices.Delete(s.hits, slices.Index(s.hits, old), slices.Index(s.hits, old)+1)
	} else if len(s.hits) == s.request.First {
		last := s.hits[len(s.hits)-1]
		if !h.ComesBefore(last.Place) {
			return
		}
		delete(s.best, last.Subject)
		s.hits = s.hits[:len(s.hits)-1]
	}
	at, _ := slices.BinarySearchFunc(s.hits, &h, func(a, b *Hit) int {
		if a.ComesBefore(b.Place) {
			return -1
		}
		return 1
	})
	s.hits, s.best[h.Subject] = slices.Insert(s.hits, at, &h), &h
}
