package keys

import (
	"encoding/binary"
	"math"
)

// IDSize is the length of an id.
const IDSize = 9

// ID stands for a term in the index: a tag, then either the term's number in
// the dictionary or, for small values, the value itself, so that it needs no
// dictionary entry and sorts by value. The zero ID is no term.
type ID [IDSize]byte

// The tags. Those of resources come first.
const (
	TagDefaultGraph = 0x01
	TagIRI          = 0x02 // number
	TagBlank        = 0x03 // number
	TagKnownIRI     = 0x04 // which of those that the layout itself knows
	TagGeneration   = 0x05 // revision that began it; in the place of a graph only
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

// Sequence is the id of the property that numbers what stands in a graph: 1, 2,
// 3 … It has no number of the dictionary's, so that the same id means it in every
// store.
var Sequence = ID{TagKnownIRI, IDSize - 1: 1}

// Ordered is the id of one of the properties whose statements are kept in the order of
// their objects, graph by graph.
func Ordered(n uint8) ID { return ID{TagKnownIRI, IDSize - 2: 1, IDSize - 1: n} }

// Generation is the id under which the statements of a graph are kept whose content
// was written beside it, in commits from this revision on.
func Generation(began uint64) ID { return Numbered(TagGeneration, began) }

// IsZero tells whether this is no id: "any" in a pattern.
func (id ID) IsZero() bool { return id[0] == 0 }

// Tag says what the other bytes are.
func (id ID) Tag() byte { return id[0] }

// IsResource tells whether the id stands for an IRI or a blank node.
func (id ID) IsResource() bool {
	return id[0] == TagIRI || id[0] == TagBlank || id[0] == TagKnownIRI
}

// IsNumbered tells whether the id holds a dictionary number.
func (id ID) IsNumbered() bool {
	return id[0] == TagIRI || id[0] == TagBlank || id[0] == TagLiteral
}

// Numbered is the id of the dictionary's term with this number.
func Numbered(tag byte, number uint64) ID {
	id := ID{tag}
	binary.BigEndian.PutUint64(id[1:], number)
	return id
}

// Number is the dictionary number of a numbered id.
func (id ID) Number() uint64 { return binary.BigEndian.Uint64(id[1:]) }

// FromInt makes an id that sorts by the signed value.
func FromInt(tag byte, v int64) ID { return Numbered(tag, uint64(v)^(1<<63)) }

// Int is the value of an id that FromInt made.
func (id ID) Int() int64 { return int64(id.Number() ^ (1 << 63)) }

// FromDouble makes an id that sorts by the value; not for NaN.
func FromDouble(v float64) ID {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return Numbered(TagDouble, b)
}

// Double is the value of an id that FromDouble made.
func (id ID) Double() float64 {
	b := id.Number()
	if b>>63 == 1 {
		return math.Float64frombits(b &^ (1 << 63))
	}
	return math.Float64frombits(^b)
}

// MaxInlineString is the longest string that an id can hold.
const MaxInlineString = IDSize - 2

// FromString makes an id that sorts by the bytes of the string, which has at
// most MaxInlineString bytes.
func FromString(s string) ID {
	id := ID{TagString}
	id[IDSize-1] = byte(copy(id[1:IDSize-1], s))
	return id
}

// Text is the string of an id that FromString made; false if no string makes
// this id.
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
