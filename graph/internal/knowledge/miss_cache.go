package knowledge

import (
	"sync/atomic"

	"koine/kg"
)

// missCache records, for a few terms, the newest revision at which the dictionary
// had no id for them. A term without an id at a revision has none at any
// earlier one. It is safe for concurrent use.
type missCache map[kg.Term]*atomic.Uint64

func newMissCache(terms []kg.Term) missCache {
	a := missCache{}
	for _, t := range terms {
		a[t] = new(atomic.Uint64)
	}
	return a
}

// predicateID returns the id of a predicate. The label predicates are needed
// for most entities, a store uses one or two of them, and finding that a term
// is missing takes a seek, so the misses are cached in reader.missingLabels.
func (l *loader) predicateID(t kg.Term) (kg.ID, bool, error) {
	until, watched := l.reader.missingLabels[t]
	revision := uint64(l.snapshot.Revision())
	if watched && revision <= until.Load() {
		return kg.ID{}, false, nil
	}
	id, known, err := l.snapshot.ID(t)
	if watched && !known && err == nil {
		for was := until.Load(); was < revision && !until.CompareAndSwap(was, revision); was = until.Load() {
		}
	}
	return id, known, err
}
