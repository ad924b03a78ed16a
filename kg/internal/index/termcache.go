package index

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/keys"
)

// TermCache caches terms and their numbers in both directions. The dictionary only grows,
// so that entries never become invalid. It is safe for concurrent use, without a lock.
type TermCache struct {
	seed maphash.Seed
	// ByNumber is direct-mapped by the low bits of the number; the newest term wins.
	// Numbers are dense, so that as many terms as there are slots never collide, and a
	// lookup is two loads.
	ByNumber []atomic.Pointer[numberedTerm]
	// ByTerm has the same entries, each in the set that its hash selects.
	ByTerm []termSet
	Hits   base.Counter
	Misses base.Counter
}

type numberedTerm struct {
	number uint64
	term   base.Term
}

// termSet holds a few terms, any of which a new one may replace. tags are parts of their
// hashes, so that most lookups of an absent term compare no terms.
type termSet struct {
	tags  atomic.Uint64
	terms [TermWays]atomic.Pointer[numberedTerm]
}

const (
	TermWays = 4
	tagBits  = 64 / TermWays
)

// NewTermCache returns a cache with the number of entries in each direction, rounded up to
// a power of two.
func NewTermCache(entries int) *TermCache {
	entries = 1 << bits.Len(uint(max(entries, TermWays)-1))
	return &TermCache{
		seed:     maphash.MakeSeed(),
		ByNumber: make([]atomic.Pointer[numberedTerm], entries),
		ByTerm:   make([]termSet, entries/TermWays),
	}
}

// MaxCachedTerm is the length in bytes of the longest cached term. It bounds the memory,
// because the cache counts entries.
const MaxCachedTerm = 1 << 10

// setOf returns the set that may hold a term, and the term's tag.
func (c *TermCache) setOf(t base.Term) (set *termSet, tag uint64) {
	h := maphash.String(c.seed, t.Value())
	return &c.ByTerm[h&uint64(len(c.ByTerm)-1)], h >> (64 - tagBits)
}

func (c *TermCache) slotOf(number uint64) *atomic.Pointer[numberedTerm] {
	return &c.ByNumber[number&uint64(len(c.ByNumber)-1)]
}

// Add caches a term with its permanent number.
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

// findTerm returns the entry of a term, or nil.
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

// insertTerm stores an entry in a free slot or replaces another entry. If two goroutines
// insert at once, one entry may be lost until it is inserted again.
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

// Clear forgets all terms. A term that is added meanwhile may stay.
func (c *TermCache) Clear() {
	for i := range c.ByNumber {
		c.ByNumber[i].Store(nil)
	}
	for i := range c.ByTerm {
		set := &c.ByTerm[i]
		set.tags.Store(0)
		for j := range set.terms {
			set.terms[j].Store(nil)
		}
	}
}

// ID returns the id of a term, false if it is not cached.
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

// Term returns the term with a number, nil if it is not cached.
func (c *TermCache) Term(number uint64) *base.Term {
	if e := c.slotOf(number).Load(); e != nil && e.number == number {
		c.Hits.Add(1)
		return &e.term
	}
	c.Misses.Add(1)
	return nil
}
