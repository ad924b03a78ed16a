package index

import (
	"koine/kg/base"
	"koine/kg/internal/keys"
)

// RankKey returns the key by which a term is found in the order of the values, nil if it is neither
// a number nor a moment.
func RankKey(t base.Term, number uint64) []byte {
	rank, ok := base.RankOf(t)
	if !ok {
		return nil
	}
	return keys.Ranked(byte(rank.Kind), rank.At, number)
}

// RankKeyOf is RankKey for the record of a term. It decodes only records of possible values.
func RankKeyOf(record []byte, number uint64) ([]byte, error) {
	if len(record) == 0 || record[0] != base.FormXSD {
		return nil, nil
	}
	t, err := base.ParseTerm(record)
	if err != nil {
		return nil, err
	}
	return RankKey(t, number), nil
}

// LiteralUse is a predicate with a kind of literals of the dictionary that its statements have.
type LiteralUse struct {
	Predicate base.ID
	Kind      base.ValueKind
}

// LiteralUseOf returns the use by a statement. It reports false if the object is no literal of the
// dictionary.
func LiteralUseOf(q *base.Quad, ids base.IDQuad) (LiteralUse, bool) {
	if ids.Object.Tag() != keys.TagLiteral {
		return LiteralUse{}, false
	}
	rank, _ := base.RankOf(q.Object)
	return LiteralUse{ids.Predicate, rank.Kind}, true
}

// Key returns the key that records the use.
func (u LiteralUse) Key() []byte { return keys.Values(u.Predicate, byte(u.Kind)) }

// numberSet is a set of dictionary numbers, by pages of bits.
type numberSet map[uint64]*[pageNumbers / 64]uint64

// pageNumbers is the number of dictionary numbers in a page.
const pageNumbers = 1 << 12

func (s *numberSet) addNumber(number uint64) {
	page := (*s)[number/pageNumbers]
	if page == nil {
		if *s == nil {
			*s = numberSet{}
		}
		page = new([pageNumbers / 64]uint64)
		(*s)[number/pageNumbers] = page
	}
	page[number%pageNumbers/64] |= 1 << (number % 64)
}

func (s numberSet) hasNumber(number uint64) bool {
	page := s[number/pageNumbers]
	return page != nil && page[number%pageNumbers/64]&(1<<(number%64)) != 0
}

// RankedTerms are the numbers and the moments of the dictionary.
type RankedTerms [len(base.ValueKinds)]numberSet

func (r *RankedTerms) kindOf(number uint64) base.ValueKind {
	for kind := range r {
		if r[kind].hasNumber(number) {
			return base.ValueKind(kind)
		}
	}
	return base.OtherValues
}

// EachUse calls fn with each use that the statements of kv, of the present and the past, make of
// literals of the dictionary. It passes over the rest of a predicate if fn returns false.
func (r *RankedTerms) EachUse(kv KV, fn func(LiteralUse) (bool, error)) error {
	for _, o := range [...]keys.Order{keys.POSG, keys.POSG.Past()} {
		if err := r.eachUseIn(kv, o, fn); err != nil {
			return err
		}
	}
	return nil
}

func (r *RankedTerms) eachUseIn(kv KV, o keys.Order, fn func(LiteralUse) (bool, error)) error {
	c := kv.Scan([]byte{byte(o)})
	defer c.Close()
	var predicate base.ID
	var told [len(base.ValueKinds)]bool
	for c.Valid() {
		q, ok := o.Parse(c.Key())
		if !ok {
			c.Next() // the check reports it
			continue
		}
		switch tag := q.Object.Tag(); {
		case tag < keys.TagLiteral:
			c.Seek(objectsFrom(o, q.Predicate, keys.TagLiteral))
			continue
		case tag > keys.TagLiteral:
			c.Seek(objectsFrom(o, q.Predicate, 0xff))
			continue
		case q.Predicate != predicate:
			predicate, told = q.Predicate, [len(base.ValueKinds)]bool{}
		}
		kind := r.kindOf(q.Object.Number())
		if told[kind] {
			c.Next()
			continue
		}
		told[kind] = true
		if more, err := fn(LiteralUse{predicate, kind}); err != nil {
			return err
		} else if !more {
			c.Seek(objectsFrom(o, predicate, 0xff))
		}
	}
	return nil
}

// objectsFrom returns the place of a predicate's objects with a tag, or behind it.
func objectsFrom(o keys.Order, predicate base.ID, tag byte) []byte {
	return append(append([]byte{byte(o)}, predicate[:]...), tag)
}

// Add adds the term with a key of RankKey.
func (r *RankedTerms) Add(key []byte) {
	if kind, _, number, ok := keys.ParseRanked(key); ok {
		r[kind].addNumber(number)
	}
}
