package kg

import (
	"encoding/binary"
	"encoding/hex"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// dictionary reads the two sides of the term dictionary from a view of the
// index.
type dictionary struct {
	kv    kv
	cache *termCache
	fresh *freshTerms // terms of unfinished updates; nil for readers
	// missed are the terms that were looked for last and are not there; nil for
	// readers.
	missed *missedTerms
	// from is the first number that no term of the view has, 0 where that needs no
	// asking: the cache may have terms which the log has and readers do not see yet.
	from uint64
	// below is Store.flushedKV as the view was begun; nil for all but the committer.
	below *badgerKV
}

// has tells whether the view has the term with an id that the cache gave.
func (d dictionary) has(id ID) bool {
	return d.from == 0 || !id.IsNumbered() || id.Number() < d.from
}

// missedTerms keeps of terms that are about to get a number what they were looked
// for with: a quad has two that are often new, the subject and the object.
type missedTerms struct {
	terms [2]struct {
		term Term
		key  termKey
	}
	next int
}

func (m *missedTerms) add(t Term, key termKey) {
	at := &m.terms[m.next%len(m.terms)]
	at.term, at.key = t, key
	m.next++
}

// take gives the key of a term.
func (m *missedTerms) take(t Term) termKey {
	for i := range m.terms {
		if at := &m.terms[i]; at.key.record != nil && at.term == t {
			key := at.key
			at.key = termKey{}
			return key
		}
	}
	return keyOf(t)
}

// termKey is the key under which the index has the number of a term, and the record
// that it has under that number.
type termKey struct {
	key, record []byte
	hashed      bool // the key is a hash
}

func keyOf(t Term) termKey {
	record := appendTerm(nil, t)
	key, hashed := keys.Term(record, hash16)
	return termKey{key, record, hashed}
}

// freshTerms are those that unfinished updates have added. They are kept apart
// from the cache, because such an update may still be undone.
type freshTerms struct {
	byTerm map[Term]ID
	order  []Term      // as they were numbered
	next   uint64      // number of the next one
	ahead  *freshTerms // those of the group ahead, nil without
}

func newFreshTerms(next uint64) *freshTerms {
	return &freshTerms{byTerm: make(map[Term]ID), next: next}
}

// follow makes it go on where the terms of a group ahead end, which the index may not
// have yet.
func (f *freshTerms) follow(ahead *freshTerms) {
	ahead.ahead = nil // that group has landed
	f.ahead = ahead
}

// id is the id of one of the terms.
func (f *freshTerms) id(t Term) (ID, bool) {
	id, ok := f.byTerm[t]
	if !ok && f.ahead != nil {
		id, ok = f.ahead.byTerm[t]
	}
	return id, ok
}

// expect makes room for so many terms.
func (f *freshTerms) expect(n int) { f.byTerm, f.order = make(map[Term]ID, n), make([]Term, 0, n) }

// first is the number of the first of them.
func (f *freshTerms) first() uint64 { return f.next - uint64(len(f.order)) }

// term is the term with a number, false if it is none of them.
func (f *freshTerms) term(number uint64) (Term, bool) {
	if f.ahead != nil && number < f.first() {
		f = f.ahead
	}
	if number < f.first() || number >= f.next {
		return Term{}, false
	}
	return f.order[number-f.first()], true
}

// add gives a term its number.
func (f *freshTerms) add(t Term) ID {
	id := keys.Numbered(tagOf(t), f.next)
	f.byTerm[t] = id
	f.order = append(f.order, t)
	f.next++
	return id
}

// truncate forgets all but the first n terms.
func (f *freshTerms) truncate(n int) {
	for _, t := range f.order[n:] {
		f.next--
		delete(f.byTerm, t)
	}
	f.order = f.order[:n]
}

// id is the id of a term, false when the store has none for it.
func (d dictionary) id(t Term) (ID, bool, error) {
	if id, ok := inlineID(t); ok {
		return id, true, nil
	}
	if d.fresh != nil {
		if id, ok := d.fresh.id(t); ok {
			return id, true, nil
		}
	}
	if id, ok := d.cache.id(t); ok && d.has(id) {
		return id, true, nil
	}
	return d.find(t, keyOf(t))
}

// find looks the term up in the index, and keeps in the cache what it found.
func (d dictionary) find(t Term, key termKey) (ID, bool, error) {
	id, ok, err := d.read(t, key)
	if ok {
		d.cache.add(t, id.Number())
	}
	return id, ok, err
}

func (d dictionary) read(t Term, key termKey) (ID, bool, error) {
	var number uint64
	found, err := d.kv.get(key.key, func(v []byte) error {
		var n int
		number, n = binary.Uvarint(v)
		if n <= 0 {
			return codec.ErrMalformed
		}
		return nil
	})
	if !found || err != nil {
		if d.missed != nil && err == nil {
			d.missed.add(t, key)
		}
		return ID{}, false, err
	}
	// A number ahead of the next one is left over from an apply that was cut
	// short, perhaps without its other side.
	if leftover := d.fresh != nil && number >= d.fresh.next; key.hashed && !leftover {
		// A hash that two terms share is an error, not a mix-up.
		other, err := d.numbered(number)
		if err != nil {
			return ID{}, false, err
		}
		if other != t {
			return ID{}, false, Errorf(CodeInternal, "two terms share the hash %x", key.key)
		}
	}
	return keys.Numbered(tagOf(t), number), true, nil
}

// term is the term of an id.
func (d dictionary) term(id ID) (Term, error) {
	if !id.IsNumbered() {
		t, err := inlineTerm(id)
		if err != nil {
			return t, Errorf(CodeInternal, "id %s: %w", hex.EncodeToString(id[:]), err)
		}
		return t, nil
	}
	t, err := d.numbered(id.Number())
	if err == nil && tagOf(t) != id.Tag() {
		err = Errorf(CodeInternal, "id %s stands for a term of another kind", hex.EncodeToString(id[:]))
	}
	return t, err
}

func (d dictionary) numbered(number uint64) (Term, error) {
	if d.fresh != nil {
		if t, ok := d.fresh.term(number); ok {
			return t, nil
		}
	}
	if t := d.cache.term(number); t != nil {
		return *t, nil
	}
	var t Term
	found, err := d.kv.get(keys.Number(number), func(v []byte) (err error) {
		t, err = parseTerm(v)
		return err
	})
	if err == nil && !found {
		err = codec.ErrMalformed
	}
	if err != nil {
		return t, Errorf(CodeInternal, "term number %d: %w", number, err)
	}
	d.cache.add(t, number)
	return t, nil
}

// agent is the agent of a dictionary number.
func (d dictionary) agent(number uint64) (AgentID, error) {
	t, err := d.numbered(number)
	return AgentID(t.value), err
}

// agentTerm is the term under which the dictionary keeps an agent.
func agentTerm(a AgentID) Term { return IRI(string(a)) }
