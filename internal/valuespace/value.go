package valuespace

import (
	"cmp"
	"math"
	"strings"

	"koine/kg"
)

// Kind sorts the values of different kinds, which are different and in no
// order.
type Kind uint8

// The kinds.
const (
	KindNumber Kind = iota
	KindMoment
	KindBoolean
	KindText
	KindOther // a literal of a datatype without values here, or that is none of its datatype
	KindResource
)

// Value is what a term means: it stands for the literals that are written otherwise, too.
type Value struct {
	Kind    Kind
	Number  float64
	Exact   bool // of a number: it is an integer or a decimal, written in Text
	Moment  Moment
	Boolean bool
	Text    string // also of the other kinds: how it is written
	Lang    string // of a text
}

// Of is the meaning of a term.
func Of(t kg.Term) Value {
	v := Value{Kind: KindOther, Text: t.Value()}
	if t.IsResource() {
		v.Kind, v.Text = KindResource, t.Name()
		return v
	}
	switch datatype := t.Datatype(); datatype {
	case kg.XSDString, kg.RDFLangString:
		v.Kind, v.Lang = KindText, t.Lang()
	case kg.XSDBoolean:
		switch t.Value() {
		case "true", "1":
			v.Kind, v.Boolean = KindBoolean, true
		case "false", "0":
			v.Kind = KindBoolean
		}
	case kg.XSDDateTime, kg.XSDDate, xsdTime, xsdDateTimeStamp:
		if m, ok := ParseMoment(t.Value(), datatype); ok {
			v.Kind, v.Moment = KindMoment, m
		}
	default:
		if f, exact, ok := parseNumber(t.Value(), datatype); ok {
			v.Kind, v.Number, v.Exact = KindNumber, f, exact
		}
	}
	return v
}

// Order is a total order of values, for lists: by kind, then by meaning where that
// has an order, and by something that stays the same where it has none.
func (v Value) Order(w Value) int {
	if c := cmp.Compare(v.place(), w.place()); c != 0 {
		return c
	}
	switch v.Kind {
	case KindNumber:
		return orderNumbers(v, w)
	case KindMoment:
		return v.Moment.Order(w.Moment)
	case KindBoolean:
		return compareBooleans(v.Boolean, w.Boolean)
	}
	return strings.Compare(v.Text, w.Text)
}

// place is where the values of a kind stand in order, with blank nodes before IRIs.
func (v Value) place() int {
	if v.Kind == KindResource && strings.HasPrefix(v.Text, "_:") {
		return int(v.Kind)
	}
	return int(v.Kind) + 1
}

// Compare compares two values as the operators of SPARQL 1.1, section 17.3, do.
// Without ordered they are equal or different, and neither is less; without known it
// cannot be told whether they are equal.
func (v Value) Compare(w Value) (c int, ordered, known bool) {
	switch {
	case v.Kind == KindOther || w.Kind == KindOther:
		// A resource is no literal, and what literals of an unknown datatype mean
		// nobody knows.
		return 1, false, v.Kind == KindResource || w.Kind == KindResource
	case v.Kind != w.Kind:
		return 1, false, true
	}
	switch v.Kind {
	case KindNumber:
		if math.IsNaN(v.Number) || math.IsNaN(w.Number) {
			return 1, false, true
		}
		return compareNumbers(v, w), true, true
	case KindMoment:
		return v.Moment.Compare(w.Moment)
	case KindBoolean:
		return compareBooleans(v.Boolean, w.Boolean), true, true
	case KindText:
		if !strings.EqualFold(v.Lang, w.Lang) {
			return 1, false, true
		}
	}
	return strings.Compare(v.Text, w.Text), true, true
}

// CompareTerms is the comparison of two terms: what is the same term is equal,
// whatever it means, but for a number that is none.
func CompareTerms(a, b kg.Term) (c int, ordered, known bool) {
	v := Of(a)
	c, ordered, known = v.Compare(Of(b))
	if a == b && !known {
		return 0, false, true
	}
	return c, ordered, known
}

// WellFormed tells whether a literal's text is one of its datatype. A datatype without
// values here is taken at its word.
func WellFormed(t kg.Term) bool {
	switch datatype := t.Datatype(); {
	case datatype == kg.XSDBoolean, isNumeric(datatype):
		return Of(t).Kind != KindOther
	case isTemporal(datatype):
		return Of(t).Kind != KindOther || hasLongYear(t.Value()) && t.FitsDatatype()
	}
	return true
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
