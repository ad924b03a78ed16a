package graph

import (
	"sync/atomic"

	"koine/kg"
)

// absent notes which of a few terms the store does not know, and up to which
// revision. What it did not know at one revision it did not know before. It is
// safe for concurrent use.
type absent map[kg.Term]*atomic.Uint64

func newAbsent(terms []kg.Term) absent {
	a := absent{}
	for _, t := range terms {
		a[t] = new(atomic.Uint64)
	}
	return a
}

// predicate is the id of a predicate. The properties that labels come from are
// wanted with most entities, a store has one or two of them, and finding out
// that one is not there takes a seek, unlike finding one.
func (l *loader) predicate(t kg.Term) (kg.ID, bool, error) {
	until, watched := l.engine.absent[t]
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
