package graph

import (
	"cmp"
	"math"
	"strings"

	"koine/kg"
)

// valueKind sorts the values of different kinds, which are different and in no
// order.
type valueKind uint8

const (
	numberValue valueKind = iota
	momentValue
	booleanValue
	textValue
	otherValue // a literal of a datatype without values here, or that is none of its datatype
	resourceValue
)

// value is what a term means: it stands for the literals that are written
// otherwise, too (XML Schema Datatypes 1.1). Terms that join, that DISTINCT keeps
// apart and that groups are made of are compared as terms, never by value.
type value struct {
	kind    valueKind
	number  float64
	exact   bool // of a number: it is an integer or a decimal, written in text
	moment  moment
	boolean bool
	text    string // also of the other kinds: how it is written
	lang    string // of a text
}

// valueOf is the meaning of a term.
func valueOf(t kg.Term) value {
	v := value{kind: otherValue, text: t.Value()}
	if t.IsResource() {
		v.kind, v.text = resourceValue, t.Name()
		return v
	}
	switch datatype := t.Datatype(); datatype {
	case kg.XSDString, kg.RDFLangString:
		v.kind, v.lang = textValue, t.Lang()
	case kg.XSDBoolean:
		switch t.Value() {
		case "true", "1":
			v.kind, v.boolean = booleanValue, true
		case "false", "0":
			v.kind = booleanValue
		}
	case kg.XSDDateTime, kg.XSDDate, xsdTime, xsdDateTimeStamp:
		if m, ok := parseMoment(t.Value(), datatype); ok {
			v.kind, v.moment = momentValue, m
		}
	default:
		if f, exact, ok := parseNumber(t.Value(), datatype); ok {
			v.kind, v.number, v.exact = numberValue, f, exact
		}
	}
	return v
}

// order is a total order of values, for lists: by kind, then by meaning where that
// has an order, and by something that stays the same where it has none.
func (v value) order(w value) int {
	if c := cmp.Compare(v.place(), w.place()); c != 0 {
		return c
	}
	switch v.kind {
	case numberValue:
		return orderNumbers(v, w)
	case momentValue:
		return v.moment.order(w.moment)
	case booleanValue:
		return compareBooleans(v.boolean, w.boolean)
	}
	return strings.Compare(v.text, w.text)
}

// place is where the values of a kind stand in order, with blank nodes before IRIs.
func (v value) place() int {
	if v.kind == resourceValue && strings.HasPrefix(v.text, "_:") {
		return int(v.kind)
	}
	return int(v.kind) + 1
}

// compare compares two values as the operators of SPARQL 1.1, section 17.3, do.
// Without ordered they are equal or different, and neither is less; without known it
// cannot be told whether they are equal.
func (v value) compare(w value) (c int, ordered, known bool) {
	switch {
	case v.kind == otherValue || w.kind == otherValue:
		// A resource is no literal, and what literals of an unknown datatype mean
		// nobody knows.
		return 1, false, v.kind == resourceValue || w.kind == resourceValue
	case v.kind != w.kind:
		return 1, false, true
	}
	switch v.kind {
	case numberValue:
		if math.IsNaN(v.number) || math.IsNaN(w.number) {
			return 1, false, true
		}
		return compareNumbers(v, w), true, true
	case momentValue:
		return v.moment.compare(w.moment)
	case booleanValue:
		return compareBooleans(v.boolean, w.boolean), true, true
	case textValue:
		if !strings.EqualFold(v.lang, w.lang) {
			return 1, false, true
		}
	}
	return strings.Compare(v.text, w.text), true, true
}

// compareTermValues is the comparison of two terms: what is the same term is equal,
// whatever it means, but for a number that is none.
func compareTermValues(a, b kg.Term) (c int, ordered, known bool) {
	v := valueOf(a)
	c, ordered, known = v.compare(valueOf(b))
	if a == b && !known {
		return 0, false, true
	}
	return c, ordered, known
}

func compareBooleans(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
