package kg

import (
	"encoding/binary"

	"koine/kg/internal/keys"
)

// localNumbers is where the numbers of local ids begin. The dictionary never
// comes that far.
const localNumbers = 1 << 63

// MaxLocalTerms bounds the local ids of a snapshot. It is more than an operation of
// GraphQL can name: two ends of each of 64 triples in each of 50 fields.
const MaxLocalTerms = 10_000

// LocalID gives a term an id on this snapshot only, which no statement has: it
// stands for a term that the store does not know, or that must look as if it did
// not. Term gives the term back. Two snapshots give a term the same local id
// unless their terms collide. A snapshot has at most MaxLocalTerms of them; one more is
// LIMIT_EXCEEDED.
func (s *Snapshot) LocalID(t Term) (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := hash16(appendTerm(nil, t))
	for n := binary.BigEndian.Uint64(h[:8]) | localNumbers; ; n = (n + 1) | localNumbers {
		id := keys.Numbered(tagOf(t), n)
		switch had, taken := s.local[id]; {
		case taken && had == t:
			return id, nil
		case taken:
			continue
		case len(s.local) == MaxLocalTerms:
			e := Errorf(CodeLimitExceeded, "more than %d terms that are in no statement are named as ends of paths without a step", MaxLocalTerms)
			e.Limit, e.Hint = "localTerms", "Ask of fewer terms at a time, or by a path that takes a step (+ instead of *)."
			return ID{}, e
		}
		if s.local == nil {
			s.local = map[ID]Term{}
		}
		s.local[id] = t
		return id, nil
	}
}

// IsLocal tells whether LocalID made the id.
func IsLocal(id ID) bool { return id.IsNumbered() && id.Number() >= localNumbers }

// localTerm is the term of a local id.
func (s *Snapshot) localTerm(id ID) (Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.local[id]
	if !ok {
		return t, Errorf(CodeInternal, "a local id of another snapshot")
	}
	return t, nil
}
