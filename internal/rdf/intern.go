package rdf

import (
	"hash/maphash"

	"koine/kg"
)

// internSlots is the size of the IRI cache. Documents repeat predicates, classes and adjacent
// subjects; a direct-mapped cache finds nearly all of them.
const internSlots = 1 << 12

// interned caches IRIs by their bytes, so that a repeated IRI is neither checked nor allocated again.
// A collision replaces the earlier IRI.
type interned struct {
	options *Options
	seed    maphash.Seed
	slots   [internSlots]kg.Term
}

func newInterned(o *Options) *interned { return &interned{options: o, seed: maphash.MakeSeed()} }

// iri returns the term of an absolute IRI. It checks the IRI if it is not cached.
func (t *interned) iri(text []byte) (kg.Term, error) {
	slot := &t.slots[maphash.Bytes(t.seed, text)%internSlots]
	if !slot.IsZero() && slot.Value() == string(text) {
		return *slot, nil
	}
	iri, err := t.options.iri(string(text))
	if err != nil {
		return kg.Term{}, err
	}
	*slot = iri
	return iri, nil
}
