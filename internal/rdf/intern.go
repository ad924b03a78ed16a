package rdf

import (
	"hash/maphash"

	"koine/kg"
)

// internSlots is the size of the IRI cache. Documents repeat predicates, classes and adjacent
// subjects; a direct-mapped cache finds nearly all of them.
const internSlots = 1 << 12

// iriCache caches IRIs by their bytes, so that a repeated IRI is neither checked nor
// allocated again. A collision replaces the earlier IRI.
type iriCache struct {
	options *Options
	seed    maphash.Seed
	slots   [internSlots]kg.Term
}

func newInterned(o *Options) *iriCache { return &iriCache{options: o, seed: maphash.MakeSeed()} }

// lookUpIRI returns the term of an absolute IRI. It checks the IRI if it is not cached.
func (t *iriCache) lookUpIRI(text []byte) (kg.Term, error) {
	slot := &t.slots[maphash.Bytes(t.seed, text)%internSlots]
	if !slot.IsZero() && slot.Value() == string(text) {
		return *slot, nil
	}
	iri, err := t.options.checkedIRI(string(text))
	if err != nil {
		return kg.Term{}, err
	}
	*slot = iri
	return iri, nil
}
