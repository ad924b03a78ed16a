// Package keys defines the layout of the index: the bytes of every key. It deals with ids and
// bytes, not with terms, views or commits.
//
// A key is one prefix byte followed by fixed-width parts (numbers big-endian, so that keys sort by
// value):
//
//	00  meta        00 | name
//	01  term → id   01 | 00 | term record        records of up to 64 bytes
//	                01 | 00 | its first 64 bytes | hash(16)   longer ones, by SHA-256
//	02  id → term   02 | number(8)
//	03  value       03 | kind | rank(8) number(8) no value; terms that are numbers or moments, in order
//	10  SPOG        10 | s(9) p(9) o(9) g(9)     value: since and assertions
//	11  POSG        11 | p o s g                 no value
//	12  OSPG        12 | o s p g                 no value; objects that are resources only
//	13  GSPO        13 | g s p o                 no value
//	14  GPOS        14 | g p o s                 no value; statements of Sequence and Ordered only
//	18  past SPOG   18 | s p o g | to(8) from(8) value: the assertions of that time
//	19  past POSG   19 | p o s g | to(8) from(8)
//	1a  past OSPG   1a | o s p g | to(8) from(8)
//	1b  past GSPO   1b | g s p o | to(8) from(8)
//	1c  past GPOS   1c | g p o s | to(8) from(8)
//	20  last change 20 | g(9) s(9)               value: revision
//	30  count       30 | g(9) p(9)               value: revision, statements of a predicate
//	31  count       31 | g(9) c(9)               value: revision, subjects of a class
//	32  language    32 | tag                     no value: some literal has it
//	33  datatype    33 | IRI                     no value: some literal has it
//	36  values      36 | p(9) | kind             no value: some object is or was a literal like this
//	34  count       34 | number(8)               value: revision, statements that an agent backs
//	35  generation  35 | revision(8)             value: its graph, from when on it counts
//	40  idempotency 40 | hash(16)                value: revision, content hash
//	80…ff           reserved
//
// SPOG answers "statements of this subject", POSG "subjects with this value", OSPG "references to
// this resource" (literals are found through POSG; omitting them from OSPG makes loading about a
// third faster), GSPO "statements of this graph". GPOS answers "in this graph, from number 41 on";
// for all statements it would add a quarter more keys, so it has only numbered and ordered
// properties. The past orders mirror them for reads of older revisions, so that reads of the
// present do not pay for history.
package keys

import (
	"bytes"
	"encoding/binary"
)

// Version is the version of this layout. An index of an older version is upgraded in place: from
// VersionHashed through VersionMixed to VersionUnranked, and from there to this one. One of any
// other version is rebuilt from the log.
const (
	Version = 4
	// VersionUnranked may lack keys with the prefixes 03 and 36.
	VersionUnranked = 3
	// VersionHashed has long terms under 01 | 01 | hash(16), in no order.
	VersionHashed = 1
	// VersionMixed may have some of them there.
	VersionMixed = 2
)

// The key prefixes.
const (
	prefixMeta      = 0x00
	prefixTerm      = 0x01
	prefixNumber    = 0x02
	prefixRank      = 0x03
	prefixLast      = 0x20
	PrefixPredicate = 0x30
	PrefixClass     = 0x31
	prefixLanguage  = 0x32
	prefixDatatype  = 0x33
	PrefixSource    = 0x34
	prefixGen       = 0x35
	prefixValues    = 0x36
	prefixIdem      = 0x40
)

// Order is an index order. Its value is the prefix byte.
type Order byte

// The orders of the present; past is added for those of the past.
const (
	SPOG Order = 0x10
	POSG Order = 0x11
	OSPG Order = 0x12
	GSPO Order = 0x13
	GPOS Order = 0x14

	past Order = 0x08
)

// Orders are the orders of the present.
var Orders = [...]Order{SPOG, POSG, OSPG, GSPO, GPOS}

// Holds reports whether the order has a key for the quad.
func (o Order) Holds(q Quad) bool {
	switch o &^ past {
	case OSPG:
		return q.Object.IsResource()
	case GPOS:
		return q.Predicate[0] == TagKnownIRI
	}
	return true
}

// Past returns the order of the past with the same sequence of ids.
func (o Order) Past() Order { return o | past }

// Quad is a statement of ids. In a pattern, the zero ID matches any.
type Quad struct{ Subject, Predicate, Object, Graph ID }

// QuadKeySize is the length of a key of the present, PastKeySize of the past.
const (
	QuadKeySize = 1 + 4*IDSize
	PastKeySize = QuadKeySize + 16
)

// idsOf returns the ids in the sequence of the order.
func (o Order) idsOf(q *Quad) [4]*ID {
	switch o &^ past {
	case POSG:
		return [4]*ID{&q.Predicate, &q.Object, &q.Subject, &q.Graph}
	case OSPG:
		return [4]*ID{&q.Object, &q.Subject, &q.Predicate, &q.Graph}
	case GSPO:
		return [4]*ID{&q.Graph, &q.Subject, &q.Predicate, &q.Object}
	case GPOS:
		return [4]*ID{&q.Graph, &q.Predicate, &q.Object, &q.Subject}
	}
	return [4]*ID{&q.Subject, &q.Predicate, &q.Object, &q.Graph}
}

// Append appends the key of q in this order.
func (o Order) Append(dst []byte, q Quad) []byte {
	dst = append(dst, byte(o))
	for _, id := range o.idsOf(&q) {
		dst = append(dst, id[:]...)
	}
	return dst
}

// AppendPrefix appends the longest key prefix that the bound ids of the pattern determine, and
// returns the number of ids in it.
func (o Order) AppendPrefix(dst []byte, pattern Quad) (prefix []byte, bound int) {
	dst = append(dst, byte(o))
	for _, id := range o.idsOf(&pattern) {
		if id.IsZero() {
			break
		}
		dst = append(dst, id[:]...)
		bound++
	}
	return dst, bound
}

// Parse decodes the ids of a key of this order, of the present or the past. It reports false if
// the key is malformed.
func (o Order) Parse(key []byte) (q Quad, ok bool) {
	want := QuadKeySize
	if o&past != 0 {
		want = PastKeySize
	}
	if len(key) != want || key[0] != byte(o) {
		return q, false
	}
	ids := o.idsOf(&q)
	*ids[0], *ids[1] = ID(key[1:1+IDSize]), ID(key[1+IDSize:1+2*IDSize])
	*ids[2], *ids[3] = ID(key[1+2*IDSize:1+3*IDSize]), ID(key[1+3*IDSize:1+4*IDSize])
	return q, !q.Subject.IsZero() && !q.Predicate.IsZero() && !q.Object.IsZero() && !q.Graph.IsZero()
}

// ParseInto is Parse for a key of the present, into q.
func (o Order) ParseInto(q *Quad, key []byte) bool {
	if len(key) != QuadKeySize || key[0] != byte(o) {
		return false
	}
	a, b := (*ID)(key[1:1+IDSize]), (*ID)(key[1+IDSize:1+2*IDSize])
	c, d := (*ID)(key[1+2*IDSize:1+3*IDSize]), (*ID)(key[1+3*IDSize:])
	switch o {
	case SPOG:
		q.Subject, q.Predicate, q.Object, q.Graph = *a, *b, *c, *d
	case POSG:
		q.Predicate, q.Object, q.Subject, q.Graph = *a, *b, *c, *d
	case OSPG:
		q.Object, q.Subject, q.Predicate, q.Graph = *a, *b, *c, *d
	case GSPO:
		q.Graph, q.Subject, q.Predicate, q.Object = *a, *b, *c, *d
	case GPOS:
		q.Graph, q.Predicate, q.Object, q.Subject = *a, *b, *c, *d
	default:
		return false
	}
	return !a.IsZero() && !b.IsZero() && !c.IsZero() && !d.IsZero()
}

// Choose returns the order with the longest prefix for the pattern. For a literal object without
// a predicate there is none: see NeedsPredicates.
func Choose(pattern Quad) Order {
	s, p, o, g := !pattern.Subject.IsZero(), !pattern.Predicate.IsZero(), !pattern.Object.IsZero(), !pattern.Graph.IsZero()
	resource := o && pattern.Object.IsResource()
	switch {
	case s && g && !p:
		return GSPO
	case s && !p && resource:
		return OSPG
	case s:
		return SPOG
	case g && pattern.Predicate[0] == TagKnownIRI:
		return GPOS
	case p && o:
		return POSG
	case resource:
		return OSPG
	case p:
		return POSG
	case g:
		return GSPO
	}
	return SPOG
}

// NeedsPredicates reports whether the pattern must be answered through POSG once per predicate: it
// has a literal object, and neither subject nor predicate.
func NeedsPredicates(pattern Quad) bool {
	return pattern.Subject.IsZero() && pattern.Predicate.IsZero() &&
		!pattern.Object.IsZero() && !pattern.Object.IsResource()
}

// Matches reports whether q matches the pattern.
func Matches(pattern, q Quad) bool {
	return (pattern.Subject.IsZero() || pattern.Subject == q.Subject) &&
		(pattern.Predicate.IsZero() || pattern.Predicate == q.Predicate) &&
		(pattern.Object.IsZero() || pattern.Object == q.Object) &&
		(pattern.Graph.IsZero() || pattern.Graph == q.Graph)
}

// AppendPast appends the past key of q for the interval [from, to).
func (o Order) AppendPast(dst []byte, q Quad, from, to uint64) []byte {
	dst = o.Past().Append(dst, q)
	dst = binary.BigEndian.AppendUint64(dst, to)
	return binary.BigEndian.AppendUint64(dst, from)
}

// Interval decodes the interval of a past key.
func Interval(key []byte) (from, to uint64, ok bool) {
	if len(key) != PastKeySize {
		return 0, 0, false
	}
	to = binary.BigEndian.Uint64(key[QuadKeySize:])
	from = binary.BigEndian.Uint64(key[QuadKeySize+8:])
	return from, to, from < to
}

// Meta returns the key of a metadata value of the index.
func Meta(name string) []byte { return append([]byte{prefixMeta}, name...) }

// MaxInlineRecord is the largest term record that is part of its key.
const MaxInlineRecord = 64

// Term returns the key of the dictionary entry of a term. Keys are in the order of the records, as
// far as the first MaxInlineRecord bytes tell them apart. hashed reports that the key has a hash
// for the rest, so that the record must be compared.
func Term(record []byte, hash func([]byte) [16]byte) (key []byte, hashed bool) {
	if len(record) <= MaxInlineRecord {
		return append([]byte{prefixTerm, 0}, record...), false
	}
	h := hash(record)
	key = append(make([]byte, 0, 2+MaxInlineRecord+len(h)), prefixTerm, 0)
	return append(append(key, record[:MaxInlineRecord]...), h[:]...), true
}

// TermsWith returns the prefix of the keys of all terms with records that begin with these bytes.
// Beyond MaxInlineRecord of them it includes other terms.
func TermsWith(record []byte) []byte {
	return append([]byte{prefixTerm, 0}, record[:min(len(record), MaxInlineRecord)]...)
}

// HashedTerm returns the key that a long term has in VersionHashed.
func HashedTerm(record []byte, hash func([]byte) [16]byte) []byte {
	h := hash(record)
	return append(HashedPrefix(), h[:]...)
}

// TermPrefix and NumberPrefix return the prefixes of the two sides of the dictionary, HashedPrefix
// that of HashedTerm.
func TermPrefix() []byte   { return []byte{prefixTerm} }
func NumberPrefix() []byte { return []byte{prefixNumber} }
func HashedPrefix() []byte { return []byte{prefixTerm, 1} }

// Number returns the key of the term record with this number.
func Number(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixNumber}, n)
}

// ParseNumber decodes a key made by Number.
func ParseNumber(key []byte) (uint64, bool) {
	if len(key) != 9 || key[0] != prefixNumber {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// Ranked returns the key of the term with this number, which is a value of a kind.
func Ranked(kind byte, rank, number uint64) []byte {
	return binary.BigEndian.AppendUint64(RankedFrom(kind, rank), number)
}

// RankedFrom returns the prefix of the keys of all terms with a rank.
func RankedFrom(kind byte, rank uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixRank, kind}, rank)
}

// RankedPrefix returns the prefix of the keys of Ranked.
func RankedPrefix() []byte { return []byte{prefixRank} }

// ParseRanked decodes a key made by Ranked.
func ParseRanked(key []byte) (kind byte, rank, number uint64, ok bool) {
	if len(key) != 18 || key[0] != prefixRank {
		return 0, 0, 0, false
	}
	return key[1], binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint64(key[10:]), true
}

// Values returns the key that records that a statement of the predicate has, or had, a literal of the
// dictionary of a kind as its object.
func Values(predicate ID, kind byte) []byte {
	return append(append([]byte{prefixValues}, predicate[:]...), kind)
}

// Last returns the key of the last change of a subject in a graph.
func Last(graph, subject ID) []byte { return pairKey(prefixLast, graph, subject) }

// Predicate and Class return the keys of the catalogue's counts.
func Predicate(graph, predicate ID) []byte { return pairKey(PrefixPredicate, graph, predicate) }
func Class(graph, class ID) []byte         { return pairKey(PrefixClass, graph, class) }

// Source returns the key of the number of statements that an agent asserts; number is the agent's
// dictionary number.
func Source(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{PrefixSource}, number)
}

// ParseSource decodes a key made by Source.
func ParseSource(key []byte) (number uint64, ok bool) {
	if len(key) != 9 || key[0] != PrefixSource {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// GenerationRecord returns the key of the record of a graph's generation.
func GenerationRecord(began uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixGen}, began)
}

// GenerationPrefix returns the prefix of the generation records.
func GenerationPrefix() []byte { return []byte{prefixGen} }

// ParseGenerationRecord decodes a key made by GenerationRecord.
func ParseGenerationRecord(key []byte) (began uint64, ok bool) {
	if len(key) != 9 || key[0] != prefixGen {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// Language returns the key that records that some literal has the language tag.
func Language(tag string) []byte { return append([]byte{prefixLanguage}, tag...) }

// LanguagePrefix returns the prefix of the language keys.
func LanguagePrefix() []byte { return []byte{prefixLanguage} }

// Datatype returns the key that records that some literal in the dictionary has the datatype.
func Datatype(iri string) []byte { return append([]byte{prefixDatatype}, iri...) }

// DatatypePrefix returns the prefix of the datatype keys.
func DatatypePrefix() []byte { return []byte{prefixDatatype} }

// LastPrefix returns the prefix of the last-change keys.
func LastPrefix() []byte { return []byte{prefixLast} }

func pairKey(prefix byte, a, b ID) []byte {
	k := make([]byte, 0, 1+2*IDSize)
	k = append(k, prefix)
	k = append(k, a[:]...)
	return append(k, b[:]...)
}

// ParsePair decodes a key of two ids: a last change or a count.
func ParsePair(key []byte) (a, b ID, ok bool) {
	if len(key) != 1+2*IDSize {
		return a, b, false
	}
	copy(a[:], key[1:])
	copy(b[:], key[1+IDSize:])
	return a, b, !a.IsZero() && !b.IsZero()
}

// Idempotency returns the key of a stored idempotent response.
func Idempotency(hash [16]byte) []byte { return append([]byte{prefixIdem}, hash[:]...) }

// IdempotencyPrefix returns the prefix of the idempotency keys.
func IdempotencyPrefix() []byte { return []byte{prefixIdem} }

// Successor returns the first key after all keys with the prefix.
func Successor(prefix []byte) []byte {
	k := bytes.Clone(prefix)
	for i := len(k) - 1; i >= 0; i-- {
		if k[i] != 0xff {
			k[i]++
			return k[:i+1]
		}
	}
	return nil
}
