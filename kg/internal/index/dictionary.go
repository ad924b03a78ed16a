package index

import (
	"encoding/binary"
	"encoding/hex"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// Dictionary maps terms to ids and back, from a view of the index.
type Dictionary struct {
	KV    KV
	Cache *TermCache
	Fresh *FreshTerms // terms of unfinished updates; nil for readers
	// missed caches the keys of terms that were looked up last and not found; nil for
	// readers.
	missed *missedTerms
	// FirstUnseen is the first number that no term of the view has; 0 disables the check.
	// The cache may hold terms that are in the log and not yet visible to readers.
	FirstUnseen uint64
	// Flushed is Store.flushedKV at the time the view was begun; nil for all but the
	// committer.
	Flushed *BadgerKV
	// HashedTerms reports that long terms may be under their hash alone (Marker).
	HashedTerms bool
	// Unranked reports that terms may lack the keys of their values (Marker).
	Unranked bool
}

// inView reports whether a term with an id from the cache is in the view.
func (d Dictionary) inView(id base.ID) bool {
	return d.FirstUnseen == 0 || !id.IsNumbered() || id.Number() < d.FirstUnseen
}

// missedTerms keeps the keys of terms that are about to be numbered, so that they are not
// computed twice. A quad often has two new terms, its subject and its object.
type missedTerms struct {
	terms [2]struct {
		term base.Term
		key  TermKey
	}
	next int
}

func (m *missedTerms) add(t base.Term, key TermKey) {
	at := &m.terms[m.next%len(m.terms)]
	at.term, at.key = t, key
	m.next++
}

// takeKey returns the key of a term and removes it from the cache.
func (m *missedTerms) takeKey(t base.Term) TermKey {
	for i := range m.terms {
		if at := &m.terms[i]; at.key.record != nil && at.term == t {
			key := at.key
			at.key = TermKey{}
			return key
		}
	}
	return KeyOf(t)
}

// TermKey is the index key of a term, and the record that the index stores under the
// term's number.
type TermKey struct {
	key, record []byte
	hashed      bool // the key is a hash
}

// KeyOf returns the key of a term.
func KeyOf(t base.Term) TermKey {
	record := base.AppendTerm(nil, t)
	key, hashed := keys.Term(record, base.Hash16)
	return TermKey{key, record, hashed}
}

// FreshTerms are the terms that unfinished updates have added. They are kept apart from
// the cache, because such an update may still be undone.
type FreshTerms struct {
	byTerm   map[base.Term]base.ID
	Order    []base.Term // as they were numbered
	Next     uint64      // number of the next one
	Previous *FreshTerms // those of the group ahead, nil without
}

// NewFreshTerms returns an empty set whose first term gets the number next.
func NewFreshTerms(next uint64) *FreshTerms {
	return &FreshTerms{byTerm: make(map[base.Term]base.ID), Next: next}
}

// ContinueAfter makes f continue the numbering of the preceding group, whose terms the
// index may not have yet.
func (f *FreshTerms) ContinueAfter(ahead *FreshTerms) {
	ahead.Previous = nil // the index has that group's predecessor
	f.Previous = ahead
}

// ID returns the id of a fresh term.
func (f *FreshTerms) ID(t base.Term) (base.ID, bool) {
	id, ok := f.byTerm[t]
	if !ok && f.Previous != nil {
		id, ok = f.Previous.byTerm[t]
	}
	return id, ok
}

// Grow reserves space for n terms. The set must be empty.
func (f *FreshTerms) Grow(n int) {
	f.byTerm, f.Order = make(map[base.Term]base.ID, n), make([]base.Term, 0, n)
}

// First returns the number of the first term.
func (f *FreshTerms) First() uint64 { return f.Next - uint64(len(f.Order)) }

// Term returns the term with a number, false if it is not fresh.
func (f *FreshTerms) Term(number uint64) (base.Term, bool) {
	if f.Previous != nil && number < f.First() {
		f = f.Previous
	}
	if number < f.First() || number >= f.Next {
		return base.Term{}, false
	}
	return f.Order[number-f.First()], true
}

// Add assigns the next number to a term.
func (f *FreshTerms) Add(t base.Term) base.ID {
	id := keys.Numbered(base.TagOf(t), f.Next)
	f.byTerm[t] = id
	f.Order = append(f.Order, t)
	f.Next++
	return id
}

// Truncate removes all but the first n terms.
func (f *FreshTerms) Truncate(n int) {
	for _, t := range f.Order[n:] {
		f.Next--
		delete(f.byTerm, t)
	}
	f.Order = f.Order[:n]
}

// ID returns the id of a term, false if the store has none for it.
func (d Dictionary) ID(t base.Term) (base.ID, bool, error) {
	if id, ok := base.InlineID(t); ok {
		return id, true, nil
	}
	if d.Fresh != nil {
		if id, ok := d.Fresh.ID(t); ok {
			return id, true, nil
		}
	}
	if id, ok := d.Cache.ID(t); ok && d.inView(id) {
		return id, true, nil
	}
	return d.Find(t, KeyOf(t))
}

// Find looks the term up in the index and caches its number.
func (d Dictionary) Find(t base.Term, key TermKey) (base.ID, bool, error) {
	id, ok, err := d.lookUp(t, key)
	if ok {
		d.Cache.Add(t, id.Number())
	}
	return id, ok, err
}

func (d Dictionary) lookUp(t base.Term, key TermKey) (base.ID, bool, error) {
	var number uint64
	read := func(v []byte) (err error) {
		number, err = parseNumber(v)
		return err
	}
	found, err := d.KV.Get(key.key, read)
	if !found && err == nil && key.hashed && d.HashedTerms {
		found, err = d.KV.Get(keys.HashedTerm(key.record, base.Hash16), read)
	}
	if !found || err != nil {
		if d.missed != nil && err == nil {
			d.missed.add(t, key)
		}
		return base.ID{}, false, err
	}
	// A number ahead of the next one is left over from an apply that was cut
	// short, perhaps without its other side.
	if leftover := d.Fresh != nil && number >= d.Fresh.Next; key.hashed && !leftover {
		// A hash that two terms share is an error, not a mix-up.
		other, err := d.termByNumber(number)
		if err != nil {
			return base.ID{}, false, err
		}
		if other != t {
			return base.ID{}, false, base.Errorf(base.CodeInternal, "two terms share the hash %x", key.key)
		}
	}
	return keys.Numbered(base.TagOf(t), number), true, nil
}

// parseNumber decodes the value of a term's key.
func parseNumber(v []byte) (uint64, error) {
	number, n := binary.Uvarint(v)
	if n <= 0 {
		return 0, codec.ErrMalformed
	}
	return number, nil
}

// EachWith calls fn with the id of each term of kv with a record that begins with the prefix, which
// has at least one byte, until it returns false. Of a longer prefix it compares the first
// keys.MaxInlineRecord bytes.
func EachWith(kv KV, prefix []byte, fn func(base.ID) bool) error {
	tag := byte(keys.TagLiteral)
	switch prefix[0] {
	case base.FormIRI:
		tag = keys.TagIRI
	case base.FormBlank:
		tag = keys.TagBlank
	}
	cur := kv.Scan(keys.TermsWith(prefix))
	defer cur.Close()
	for ; cur.Valid(); cur.Next() {
		var number uint64
		if err := cur.Value(func(v []byte) (err error) {
			number, err = parseNumber(v)
			return err
		}); err != nil {
			return err
		}
		if !fn(keys.Numbered(tag, number)) {
			return nil
		}
	}
	return nil
}

// Term returns the term of an id.
func (d Dictionary) Term(id base.ID) (base.Term, error) {
	if !id.IsNumbered() {
		t, err := base.InlineTerm(id)
		if err != nil {
			return t, base.Errorf(base.CodeInternal, "id %s: %w", hex.EncodeToString(id[:]), err)
		}
		return t, nil
	}
	t, err := d.termByNumber(id.Number())
	if err == nil && base.TagOf(t) != id.Tag() {
		err = base.Errorf(base.CodeInternal, "id %s stands for a term of another kind", hex.EncodeToString(id[:]))
	}
	return t, err
}

func (d Dictionary) termByNumber(number uint64) (base.Term, error) {
	if d.Fresh != nil {
		if t, ok := d.Fresh.Term(number); ok {
			return t, nil
		}
	}
	if t := d.Cache.Term(number); t != nil {
		return *t, nil
	}
	var t base.Term
	found, err := d.KV.Get(keys.Number(number), func(v []byte) (err error) {
		t, err = base.ParseTerm(v)
		return err
	})
	if err == nil && !found {
		err = codec.ErrMalformed
	}
	if err != nil {
		return t, base.Errorf(base.CodeInternal, "term number %d: %w", number, err)
	}
	d.Cache.Add(t, number)
	return t, nil
}

// Agent returns the agent with a dictionary number.
func (d Dictionary) Agent(number uint64) (base.AgentID, error) {
	t, err := d.termByNumber(number)
	return base.AgentID(t.Value()), err
}

// Prefetched holds the results of looking up a patch's terms before the committer runs the
// patch.
type Prefetched struct {
	Cache   *TermCache // of the store that the results belong to
	Subject *PrefetchedTerm
	Object  PrefetchedTerm
}

// PrefetchedTerm is a term with its id, or with its index key if it may be new. The zero
// value has no result.
type PrefetchedTerm struct {
	Term       base.Term
	ID         base.ID
	Key        *TermKey
	AbsentFrom *BadgerKV // the Store.flushedKV that lacks the key; nil if it was not searched
}

// PrefetchedID returns the id of a term as ID does, and uses the prefetched result f if it
// is of this term. f may be nil.
func (d Dictionary) PrefetchedID(t base.Term, f *PrefetchedTerm) (base.ID, bool, error) {
	switch {
	case f == nil || f.Term != t || !d.inView(f.ID):
		return d.ID(t)
	case !f.ID.IsZero():
		return f.ID, true, nil // a term keeps its id
	}
	if d.Fresh != nil {
		if id, ok := d.Fresh.ID(t); ok {
			return id, true, nil
		}
	}
	if f.AbsentFrom != nil && f.AbsentFrom == d.Flushed {
		d.KV = InMemory{d.KV} // the key can only have been added since
	}
	return d.Find(t, *f.Key)
}
