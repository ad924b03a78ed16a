package index

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"koine/kg/internal/base"
	"koine/kg/internal/keys"
)

// TermCache remembers terms and their numbers in both directions. The dictionary
// only grows, so that an entry once right stays right. It is safe for
// concurrent use, without a lock.
type TermCache struct {
	seed maphash.Seed
	// ByNumber has one place for all numbers that are the same under the mask;
	// the newest holds it. Numbers are dense, so that up to as many terms as
	// there are places never meet, and a look-up is two loads.
	ByNumber []atomic.Pointer[numberedTerm]
	// ByTerm has the same entries, each in the set that its hash chooses.
	ByTerm []termSet
	Hits   base.Counter
	Misses base.Counter
}

type numberedTerm struct {
	number uint64
	term   base.Term
}

// termSet has room for a few terms, of which another one takes the place of any.
// The tags are a part of the hash of each, so that one that is not there is mostly
// told without looking at those that are.
type termSet struct {
	tags  atomic.Uint64
	terms [TermWays]atomic.Pointer[numberedTerm]
}

const (
	TermWays = 4
	tagBits  = 64 / TermWays
)

// NewTermCache makes a cache of so many entries in each direction, rounded up to
// a power of two.
func NewTermCache(entries int) *TermCache {
	entries = 1 << bits.Len(uint(max(entries, TermWays)-1))
	return &TermCache{
		seed:     maphash.MakeSeed(),
		ByNumber: make([]atomic.Pointer[numberedTerm], entries),
		ByTerm:   make([]termSet, entries/TermWays),
	}
}

// MaxCachedTerm keeps long texts out of the cache, whose bound counts entries.
const MaxCachedTerm = 1 << 10

// setOf is where a term is if anywhere, with its tag.
func (c *TermCache) setOf(t base.Term) (set *termSet, tag uint64) {
	h := maphash.String(c.seed, t.Value())
	return &c.ByTerm[h&uint64(len(c.ByTerm)-1)], h >> (64 - tagBits)
}

func (c *TermCache) slotOf(number uint64) *atomic.Pointer[numberedTerm] {
	return &c.ByNumber[number&uint64(len(c.ByNumber)-1)]
}

// Add takes a term in, which has the number for good.
func (c *TermCache) Add(t base.Term, number uint64) {
	if len(t.Value()) > MaxCachedTerm {
		return
	}
	e := &numberedTerm{number, t}
	c.slotOf(number).Store(e)
	set, tag := c.setOf(t)
	if set.findTerm(t, tag) == nil {
		set.insertTerm(e, tag)
	}
}

// findTerm is the entry of a term, nil when it is not in the set.
func (s *termSet) findTerm(t base.Term, tag uint64) *numberedTerm {
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

// insertTerm gives an entry a place that is free, or that of another one. When two take one at
// the same time, one of them may be found no more until it is taken in again.
func (s *termSet) insertTerm(e *numberedTerm, tag uint64) {
	at := int(e.number % TermWays)
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

// ID is the id of a term, false when it is not in the cache.
func (c *TermCache) ID(t base.Term) (base.ID, bool) {
	set, tag := c.setOf(t)
	e := set.findTerm(t, tag)
	if e == nil {
		c.Misses.Add(1)
		return base.ID{}, false
	}
	c.Hits.Add(1)
	return keys.Numbered(base.TagOf(t), e.number), true
}

// Term is the term of a number, nil when it is not in the cache.
func (c *TermCache) Term(number uint64) *base.Term {
	if e := c.slotOf(number).Load(); e != nil && e.number == number {
		c.Hits.Add(1)
		return &e.term
	}
	c.Misses.Add(1)
	return nil
}
