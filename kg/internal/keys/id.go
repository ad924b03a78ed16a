package keys

import (
	"bytes"
	"encoding/binary"
	"math"
)

// IDSize is the length of an id.
const IDSize = 9

// ID is a term in the index: a tag, followed by the term's number in the dictionary or, for
// small values, the value itself, which then needs no dictionary entry and sorts by value. The
// zero ID is not a term.
type ID [IDSize]byte

// The tags. Those of resources come first.
const (
	TagDefaultGraph = 0x01
	TagIRI          = 0x02 // number
	TagBlank        = 0x03 // number
	TagKnownIRI     = 0x04 // index of an IRI that is built into the layout
	TagGeneration   = 0x05 // revision in which it began; as a graph only
	TagLiteral      = 0x10 // number
	TagBoolean      = 0x20 // 0 or 1
	TagInteger      = 0x21 // int64
	TagDouble       = 0x22 // float64
	TagDateTime     = 0x23 // milliseconds since 1970, UTC
	TagDate         = 0x24 // days since 1970
	TagString       = 0x25 // up to 7 bytes, then the length
)

// DefaultGraph is the id of the default graph.
var DefaultGraph = ID{TagDefaultGraph}

// Sequence is the id of the property that numbers the entries of a graph: 1, 2, 3 … It is built
// in, so that it is the same in every store.
var Sequence = ID{TagKnownIRI, IDSize - 1: 1}

// Ordered returns the id of the n-th property with statements that are indexed by object within
// each graph.
func Ordered(n uint8) ID { return ID{TagKnownIRI, IDSize - 2: 1, IDSize - 1: n} }

// Generation returns the id under which the statements of a replaced graph are stored: their
// content was written in commits from the revision began on.
func Generation(began uint64) ID { return Numbered(TagGeneration, began) }

// Compare compares in the order of the index.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// IsZero reports whether the id is zero, which matches any term in a pattern.
func (id ID) IsZero() bool { return id[0] == 0 }

// Tag returns the tag.
func (id ID) Tag() byte { return id[0] }

// IsResource reports whether the id stands for an IRI or a blank node.
func (id ID) IsResource() bool {
	return id[0] == TagIRI || id[0] == TagBlank || id[0] == TagKnownIRI
}

// IsNumbered reports whether the id has a dictionary number.
func (id ID) IsNumbered() bool {
	return id[0] == TagIRI || id[0] == TagBlank || id[0] == TagLiteral
}

// Numbered returns the id of the term with this dictionary number.
func Numbered(tag byte, number uint64) ID {
	id := ID{tag}
	binary.BigEndian.PutUint64(id[1:], number)
	return id
}

// Number returns the dictionary number of a numbered id.
func (id ID) Number() uint64 { return binary.BigEndian.Uint64(id[1:]) }

// WithNumber returns the id with the same tag and another number.
func (id ID) WithNumber(n uint64) ID { return Numbered(id.Tag(), n) }

// FromInt returns an id that sorts by the signed value.
func FromInt(tag byte, v int64) ID { return Numbered(tag, uint64(v)^(1<<63)) }

// Int returns the value of an id made by FromInt.
func (id ID) Int() int64 { return int64(id.Number() ^ (1 << 63)) }

// FromDouble returns an id that sorts by the value. NaN is not allowed.
func FromDouble(v float64) ID {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return Numbered(TagDouble, b)
}

// Double returns the value of an id made by FromDouble.
func (id ID) Double() float64 {
	b := id.Number()
	if b>>63 == 1 {
		return math.Float64frombits(b &^ (1 << 63))
	}
	return math.Float64frombits(^b)
}

// MaxInlineString is the largest length in bytes of a string in an id.
const MaxInlineString = IDSize - 2

// FromString returns an id that sorts by the bytes of the string, which must have at most
// MaxInlineString bytes.
func FromString(s string) ID {
	id := ID{TagString}
	id[IDSize-1] = byte(copy(id[1:IDSize-1], s))
	return id
}

// Text returns the string of an id made by FromString. It reports false if the id is not
// valid for a string.
func (id ID) Text() (string, bool) {
	n := int(id[IDSize-1])
	if n > MaxInlineString {
		return "", false
	}
	for _, b := range id[1+n : IDSize-1] {
		if b != 0 {
			return "", false
		}
	}
	return string(id[1 : 1+n]), true
}
