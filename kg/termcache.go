package kg

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"koine/kg/internal/keys"
)

// termCache remembers terms and their numbers in both directions. The dictionary
// only grows, so that an entry once right stays right. It is safe for
// concurrent use, without a lock.
type termCache struct {
	seed maphash.Seed
	// byNumber has one place for all numbers that are the same under the mask;
	// the newest holds it. Numbers are dense, so that up to as many terms as
	// there are places never meet, and a look-up is two loads.
	byNumber []atomic.Pointer[numberedTerm]
	// byTerm has the same entries, each in the set that its hash chooses.
	byTerm []termSet
	hits   counter
	misses counter
}

type numberedTerm struct {
	number uint64
	term   Term
}

// termSet has room for a few terms, of which another one takes the place of any.
// The tags are a part of the hash of each, so that one that is not there is mostly
// told without looking at those that are.
type termSet struct {
	tags  atomic.Uint64
	terms [termWays]atomic.Pointer[numberedTerm]
}

const (
	termWays = 4
	tagBits  = 64 / termWays
)

// newTermCache makes a cache of so many entries in each direction, rounded up to
// a power of two.
func newTermCache(entries int) *termCache {
	entries = 1 << bits.Len(uint(max(entries, termWays)-1))
	return &termCache{
		seed:     maphash.MakeSeed(),
		byNumber: make([]atomic.Pointer[numberedTerm], entries),
		byTerm:   make([]termSet, entries/termWays),
	}
}

// maxCachedTerm keeps long texts out of the cache, whose bound counts entries.
const maxCachedTerm = 1 << 10

// set is where a term is if anywhere, with its tag.
func (c *termCache) set(t Term) (set *termSet, tag uint64) {
	h := maphash.String(c.seed, t.value)
	return &c.byTerm[h&uint64(len(c.byTerm)-1)], h >> (64 - tagBits)
}

func (c *termCache) place(number uint64) *atomic.Pointer[numberedTerm] {
	return &c.byNumber[number&uint64(len(c.byNumber)-1)]
}

// add takes a term in, which has the number for good.
func (c *termCache) add(t Term, number uint64) {
	if len(t.value) > maxCachedTerm {
		return
	}
	e := &numberedTerm{number, t}
	c.place(number).Store(e)
	set, tag := c.set(t)
	if set.find(t, tag) == nil {
		set.take(e, tag)
	}
}

// find is the entry of a term, nil when it is not in the set.
func (s *termSet) find(t Term, tag uint64) *numberedTerm {
	tags := s.tags.Load()
	for i := range s.terms {
		if tags>>(i*tagBits)&(1<<tagBits-1) != tag {
			continue
		}
		if e := s.terms[i].Load(); e != nil && e.term == t {
			return e
		}
	}
	return nil
}

// take gives an entry a place that is free, or that of another one. When two take one at
// the same time, one of them may be found no more until it is taken in again.
func (s *termSet) take(e *numberedTerm, tag uint64) {
	at := int(e.number % termWays)
	for i := range s.terms {
		if s.terms[i].Load() == nil {
			at = i
			break
		}
	}
	s.terms[at].Store(e)
	const mask = 1<<tagBits - 1
	s.tags.Store(s.tags.Load()&^(mask<<(at*tagBits)) | tag<<(at*tagBits))
}

// id is the id of a term, false when it is not in the cache.
func (c *termCache) id(t Term) (ID, bool) {
	set, tag := c.set(t)
	e := set.find(t, tag)
	if e == nil {
		c.misses.add(1)
		return ID{}, false
	}
	c.hits.add(1)
	return keys.Numbered(tagOf(t), e.number), true
}

// term is the term of a number, nil when it is not in the cache.
func (c *termCache) term(number uint64) *Term {
	if e := c.place(number).Load(); e != nil && e.number == number {
		c.hits.add(1)
		return &e.term
	}
	c.misses.add(1)
	return nil
}
