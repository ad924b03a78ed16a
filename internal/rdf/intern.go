package rdf

import (
	"hash/maphash"

	"koine/kg"
)

// internSlots is the number of IRIs that a reader remembers. Documents repeat
// predicates, classes and neighbouring subjects; one slot each finds nearly
// all of them without a bound to manage.
const internSlots = 1 << 12

// interned remembers IRIs by their bytes, so that one that comes again is
// neither checked nor allocated again. Where two fall into one slot the later
// one takes it.
type interned struct {
	options *Options
	seed    maphash.Seed
	slots   [internSlots]kg.Term
}

func newInterned(o *Options) *interned { return &interned{options: o, seed: maphash.MakeSeed()} }

// iri is the term of an absolute IRI, which is checked when it is not known.
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
