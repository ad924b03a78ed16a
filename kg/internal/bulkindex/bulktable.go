package bulkindex

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"

	"koine/kg/base"
	"koine/kg/internal/keys"
)

// hashTable maps 128-bit keys to values of fixed width. It is open addressed, in segments
// that grow one by one, so that growing never needs the memory of two tables. Its memory
// is mapped outside the Go heap. It belongs to one goroutine.
type hashTable struct {
	words    int // of an entry: two for the key, the rest for the value
	segments [1 << segmentBits]hashSegment
	Bytes    int // mapped memory
}

type hashSegment struct {
	memory []byte
	slots  []uint64 // view of memory; an entry with a zero key is free
	used   int      // entries
}

const (
	segmentBits = 4
	// A segment grows by a fourth when four of five entries are used.
	fullNumerator, fullDenominator = 4, 5
	growNumerator, growDenominator = 5, 4
	pageBytes                      = 4096
)

type hashKey struct{ high, low uint64 }

func newHashTable(valueWords int) *hashTable { return &hashTable{words: 2 + valueWords} }

// find returns the entry of a key; if there is none, a free entry, whose first two words
// are zero. The entry may be written until the next find. The key must not be zero.
func (t *hashTable) find(k hashKey) ([]uint64, error) {
	s := &t.segments[k.high>>(64-segmentBits)]
	if n := len(s.slots) / t.words; (s.used+1)*fullDenominator > n*fullNumerator {
		if err := t.grow(s); err != nil {
			return nil, err
		}
	}
	return s.probeSlot(k, t.words), nil
}

// probeSlot probes for a key from its home slot on.
func (s *hashSegment) probeSlot(k hashKey, words int) []uint64 {
	n := uint64(len(s.slots) / words)
	at, _ := bits.Mul64(k.high<<segmentBits|k.low>>(64-segmentBits), n)
	for {
		e := s.slots[int(at)*words : int(at+1)*words]
		if e[0] == k.high && e[1] == k.low || e[0] == 0 && e[1] == 0 {
			return e
		}
		if at++; at == n {
			at = 0
		}
	}
}

// claimSlot assigns a key to a free entry that find returned.
func (t *hashTable) claimSlot(e []uint64, k hashKey) {
	e[0], e[1] = k.high, k.low
	t.segments[k.high>>(64-segmentBits)].used++
}

func (t *hashTable) grow(s *hashSegment) error {
	size := len(s.memory)*growNumerator/growDenominator + pageBytes
	size -= size % pageBytes
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("allocating %d bytes for the terms and statements of a load: %w", size, err)
	}
	next := hashSegment{memory: memory, used: s.used}
	n := size / 8 / t.words
	next.slots = unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), n*t.words)
	for i := 0; i < len(s.slots); i += t.words {
		e := s.slots[i : i+t.words]
		if e[0] != 0 || e[1] != 0 {
			copy(next.probeSlot(hashKey{e[0], e[1]}, t.words), e)
		}
	}
	old := s.memory
	*s = next
	t.Bytes += size - len(old)
	return unmapMemory(old)
}

func unmapMemory(memory []byte) error {
	if memory == nil {
		return nil
	}
	return unix.Munmap(memory)
}

// Free unmaps the memory. The table is empty afterwards.
func (t *hashTable) Free() {
	for i := range t.segments {
		_ = unmapMemory(t.segments[i].memory) // fails only for memory that is not mapped
		t.segments[i] = hashSegment{}
	}
	t.Bytes = 0
}

// TermTable maps terms to ids by the first 128 bits of SHA-256. Two terms with the same
// hash would be one; the dictionary relies on the same assumption.
type TermTable struct{ *hashTable }

// NewTermTable returns an empty table. The caller must call Free.
func NewTermTable() TermTable { return TermTable{newHashTable(1)} }

// Find returns the entry and the key of a term's record, and the term's id if it has one.
func (t TermTable) Find(record []byte) (place []uint64, k hashKey, id base.ID, err error) {
	h := base.Hash16(record)
	k = hashKey{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:])}
	place, err = t.hashTable.find(k)
	if err == nil && place[2] != 0 {
		id = keys.Numbered(byte(place[2]>>tagShift), place[2]&numberMask)
	}
	return place, k, id, err
}

const (
	tagShift   = 56
	numberMask = 1<<tagShift - 1
)

// Set assigns an id to a term in the entry that Find returned.
func (t TermTable) Set(place []uint64, k hashKey, id base.ID) {
	t.claimSlot(place, k)
	place[2] = uint64(id.Tag())<<tagShift | id.Number()
}

// QuadSet is a set of statements in 128 bits each: the packed ids or, if these are too
// wide, a hash of them.
type QuadSet struct {
	exact, hashed *hashTable
	pairs         map[[2]base.ID]uint64 // numbers of predicates in graphs
	last          [2]base.ID
	lastPair      uint64
}

// NewQuadSet returns an empty set. The caller must call Free.
func NewQuadSet() *QuadSet {
	return &QuadSet{exact: newHashTable(0), hashed: newHashTable(0), pairs: make(map[[2]base.ID]uint64)}
}

// Bytes returns the mapped memory.
func (s *QuadSet) Bytes() int { return s.exact.Bytes + s.hashed.Bytes }

// Free unmaps the memory. The set is empty afterwards.
func (s *QuadSet) Free() {
	s.exact.Free()
	s.hashed.Free()
}

// Add adds a statement and reports whether it is new in the set.
func (s *QuadSet) Add(ids *base.IDQuad) (bool, error) {
	t := s.exact
	k, ok := s.packKey(ids)
	if !ok {
		t = s.hashed
		h := sha256.New()
		for _, id := range [...]*base.ID{&ids.Subject, &ids.Predicate, &ids.Object, &ids.Graph} {
			_, _ = h.Write(id[:]) // never fails
		}
		sum := h.Sum(nil)
		k = hashKey{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
	}
	e, err := t.find(k)
	if err != nil || e[0] != 0 || e[1] != 0 {
		return false, err
	}
	t.claimSlot(e, k)
	return true, nil
}

// A packed key is a set bit, the pair, the subject's kind and number, the object's tag,
// and the object's number or value.
const (
	pairBits          = 20
	packedNumberBits  = 36
	packedObjectTags  = 4
	packedObjectShift = 64 - 1 - pairBits - 1 - packedNumberBits - packedObjectTags // 2 bits are left
)

// objectTags are the packed tags of objects, counted from 1.
var objectTags = [...]byte{keys.TagIRI, keys.TagBlank, keys.TagKnownIRI, keys.TagLiteral, keys.TagBoolean, keys.TagInteger, keys.TagDouble, keys.TagDateTime, keys.TagDate, keys.TagString}

func (s *QuadSet) packKey(ids *base.IDQuad) (hashKey, bool) {
	pair, ok := s.numberPair([2]base.ID{ids.Predicate, ids.Graph})
	blank := uint64(0)
	if ids.Subject.Tag() == keys.TagBlank {
		blank = 1
	} else if ids.Subject.Tag() != keys.TagIRI {
		ok = false
	}
	number := ids.Subject.Number()
	tag := uint64(0)
	for i, t := range objectTags {
		if t == ids.Object.Tag() {
			tag = uint64(i + 1)
		}
	}
	if !ok || tag == 0 || number>>packedNumberBits != 0 {
		return hashKey{}, false
	}
	k := hashKey{1<<63 | pair<<(63-pairBits) | blank<<(62-pairBits) | number<<(62-pairBits-packedNumberBits) | tag<<packedObjectShift, ids.Object.Number()}
	return k.mixBits(), true
}

// numberPair numbers a predicate in a graph. It returns false if there are too many.
func (s *QuadSet) numberPair(p [2]base.ID) (uint64, bool) {
	if s.last == p {
		return s.lastPair, true
	}
	n, ok := s.pairs[p]
	if !ok {
		if n = uint64(len(s.pairs)); n>>pairBits != 0 {
			return 0, false
		}
		s.pairs[p] = n
	}
	s.last, s.lastPair = p, n
	return n, true
}

// mixBits spreads a key over all bits. It is a bijection that maps zero to zero.
func (k hashKey) mixBits() hashKey {
	for range 2 {
		k.high ^= Mix(k.low)
		k.low ^= Mix(k.high)
	}
	return k
}

// Mix is the finalizer of MurmurHash3.
func Mix(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}
