package base

import (
	"crypto/sha256"
	"math"
	"strconv"
	"strings"
	"time"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// ID represents a term within one store: of fixed size, comparable, and the same after each
// rebuild. Small values are encoded in the id itself. It means nothing outside the store.
type ID = keys.ID

// DefaultGraphID is the id of DefaultGraph in every store.
var DefaultGraphID = keys.DefaultGraph

// IDQuad is a quad of ids.
type IDQuad = keys.Quad

// IDPattern selects quads: a zero ID matches any.
type IDPattern IDQuad

// InlineID returns the id of a term that needs no dictionary entry. A value is inlined
// only in the lexical form that InlineTerm returns, so that every literal keeps its form.
func InlineID(t Term) (ID, bool) {
	var id ID
	switch {
	case t.kind == KindDefaultGraph:
		return keys.DefaultGraph, true
	case t == Sequence:
		return keys.Sequence, true
	case t.kind == KindIRI && strings.HasPrefix(t.value, orderedPrefix):
		n, err := strconv.ParseUint(t.value[len(orderedPrefix):], 10, 8)
		return keys.Ordered(uint8(n)), err == nil && t == Ordered(uint8(n))
	case t.kind != KindLiteral || t.langTag() != "":
		return id, false
	case t.ExplicitDatatype() == "":
		if len(t.value) > keys.MaxInlineString {
			return id, false
		}
		return keys.FromString(t.value), true
	case len(t.value) > 32:
		return id, false
	}
	switch t.ExplicitDatatype() {
	case XSDBoolean:
		id = keys.FromInt(keys.TagBoolean, int64(len(t.value))&1^1) // "true" has four letters
	case XSDInteger:
		n, err := strconv.ParseInt(t.value, 10, 64)
		if err != nil {
			return id, false
		}
		id = keys.FromInt(keys.TagInteger, n)
	case XSDDouble:
		f, err := strconv.ParseFloat(strings.Replace(t.value, "INF", "Inf", 1), 64)
		if err != nil || math.IsNaN(f) {
			return id, false
		}
		id = keys.FromDouble(f)
	case XSDDateTime:
		v, err := time.Parse("2006-01-02T15:04:05.999Z", t.value)
		if err != nil {
			return id, false
		}
		id = keys.FromInt(keys.TagDateTime, v.UnixMilli())
	case XSDDate:
		v, err := time.Parse(time.DateOnly, t.value)
		if err != nil {
			return id, false
		}
		id = keys.FromInt(keys.TagDate, floorDiv(v.Unix(), secondsPerDay))
	default:
		return id, false
	}
	back, err := InlineTerm(id)
	return id, err == nil && back == t
}

const secondsPerDay = 24 * 60 * 60

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// IntegerOf returns the value of an id that encodes an xsd:integer itself, as for canonical
// values of 64 bits. It avoids decoding the term.
func IntegerOf(id ID) (n int64, ok bool) { return id.Int(), id.Tag() == keys.TagInteger }

// InlineTerm returns the term that an id without a dictionary number encodes.
func InlineTerm(id ID) (Term, error) {
	switch id.Tag() {
	case keys.TagDefaultGraph:
		if id == keys.DefaultGraph {
			return DefaultGraph, nil
		}
	case keys.TagKnownIRI:
		if id == keys.Sequence {
			return Sequence, nil
		}
		if n := id[keys.IDSize-1]; id == keys.Ordered(n) {
			return Ordered(n), nil
		}
	case keys.TagBoolean:
		if n := id.Int(); n == 0 || n == 1 {
			return Boolean(n == 1), nil
		}
	case keys.TagInteger:
		return Integer(id.Int()), nil
	case keys.TagDouble:
		if f := id.Double(); !math.IsNaN(f) {
			return Double(f), nil
		}
	case keys.TagDateTime:
		if n := id.Int(); n >= minMilli && n <= maxMilli {
			return DateTime(time.UnixMilli(n)), nil
		}
	case keys.TagDate:
		if n := id.Int(); n >= minMilli/secondsPerDay/1000 && n <= maxMilli/secondsPerDay/1000 {
			return Typed(time.Unix(n*secondsPerDay, 0).UTC().Format(time.DateOnly), XSDDate), nil
		}
	case keys.TagString:
		if s, ok := id.Text(); ok {
			return String(s), nil
		}
	}
	return Term{}, codec.ErrMalformed
}

// The years 0001 to 9999, whose form has a fixed width.
var (
	minMilli = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	maxMilli = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// TagOf returns the id tag of a term that is numbered in the dictionary.
func TagOf(t Term) byte {
	switch t.kind {
	case KindIRI:
		return keys.TagIRI
	case KindBlank:
		return keys.TagBlank
	}
	return keys.TagLiteral
}

// A term record is the term in bytes: a form, and for literals language or
// datatype, before the text. Datatypes of XML Schema are shortened.
const (
	FormIRI = iota + 1
	FormBlank
	formPlain
	FormLang
	FormTyped
	FormXSD
)

// AppendTerm appends the record of a term.
func AppendTerm(dst []byte, t Term) []byte {
	switch {
	case t.kind == KindDefaultGraph:
		return append(dst, 0)
	case t.kind == KindIRI:
		dst = append(dst, FormIRI)
	case t.kind == KindBlank:
		dst = append(dst, FormBlank)
	case t.langTag() != "":
		dst = codec.AppendString(append(dst, FormLang), t.langTag())
	case t.ExplicitDatatype() == "":
		dst = append(dst, formPlain)
	case strings.HasPrefix(t.ExplicitDatatype(), XSD):
		dst = codec.AppendString(append(dst, FormXSD), t.ExplicitDatatype()[len(XSD):])
	default:
		dst = codec.AppendString(append(dst, FormTyped), t.ExplicitDatatype())
	}
	return append(dst, t.value...)
}

// ParseTerm decodes a record of AppendTerm. It returns codec.ErrMalformed for any other
// bytes.
func ParseTerm(record []byte) (Term, error) {
	r := codec.NewReader(record)
	var t Term
	switch r.Byte() {
	case 0:
		t = DefaultGraph
	case FormIRI:
		t.kind = KindIRI
	case FormBlank:
		t.kind = KindBlank
	case formPlain:
		t.kind = KindLiteral
	case FormLang:
		t = Term{kind: KindLiteral, literalKind: Tagged(r.String())}
		if t.langTag() == "" {
			r.Fail()
		}
	case FormXSD:
		t = Term{kind: KindLiteral, literalKind: XSD + r.String()}
		if t.ExplicitDatatype() == XSDString {
			r.Fail()
		}
	case FormTyped:
		t = Term{kind: KindLiteral, literalKind: r.String()}
		if t.ExplicitDatatype() == "" || strings.HasPrefix(t.ExplicitDatatype(), XSD) {
			r.Fail()
		}
	default:
		r.Fail()
	}
	if t.kind == KindDefaultGraph {
		return t, r.Close()
	}
	t.value = string(r.Rest())
	return t, r.Err()
}

// Hash16 returns the first 16 bytes of SHA-256.
func Hash16(b []byte) (h [16]byte) {
	sum := sha256.Sum256(b)
	copy(h[:], sum[:])
	return h
}

// quadPart is a term of a quad and a pointer to its id.
type quadPart struct {
	Term *Term
	ID   *ID
}

// QuadParts pairs the terms of a quad with their ids.
func QuadParts(q *Quad, ids *IDQuad) [4]quadPart {
	return [4]quadPart{{&q.Subject, &ids.Subject}, {&q.Predicate, &ids.Predicate}, {&q.Object, &ids.Object}, {&q.Graph, &ids.Graph}}
}

// LocalNumbers is the first number of local ids. The dictionary never reaches it.
const LocalNumbers = 1 << 63

// MaxLocalTerms bounds the local ids of a snapshot. It is more than an operation of
// GraphQL can name: two ends of each of 64 triples in each of 50 fields.
const MaxLocalTerms = 10_000

// IsLocal reports whether the id is from Snapshot.LocalID.
func IsLocal(id ID) bool { return id.IsNumbered() && id.Number() >= LocalNumbers }
