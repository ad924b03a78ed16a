package valuespace

import (
	"cmp"
	"math"
	"strings"

	"koine/kg"
)

// Kind is the kind of a value. Values of different kinds differ and are not ordered.
type Kind uint8

// The kinds.
const (
	KindNumber Kind = iota
	KindMoment
	KindBoolean
	KindText
	KindOther // a literal that is ill-formed, or of an unsupported datatype
	KindResource
)

// Value is the value of a term. Literals with different lexical forms may share it.
type Value struct {
	Kind    Kind
	Number  float64
	Exact   bool // number is an integer or a decimal, written in Text
	Moment  Moment
	Boolean bool
	Text    string // string value, or the lexical form of another kind
	Lang    string // language tag of a string
}

// Of returns the value of a term.
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
	case kg.XSDDateTime, kg.XSDDate, kg.XSD + "time", kg.XSD + "dateTimeStamp":
		if m, ok := ParseMoment(t.Value(), datatype); ok {
			v.Kind, v.Moment = KindMoment, m
		}
	default:
		if f, exact, ok := kg.ParseNumber(t.Value(), datatype); ok {
			v.Kind, v.Number, v.Exact = KindNumber, f, exact
		}
	}
	return v
}

// Order is a total order for sorting: by kind, then by value if the kind is ordered,
// else by a stable criterion.
func (v Value) Order(w Value) int {
	if c := cmp.Compare(v.orderRank(), w.orderRank()); c != 0 {
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

// orderRank is the rank of the value's kind in Order; blank nodes sort behind all literals and
// before IRIs.
func (v Value) orderRank() int {
	if v.Kind == KindResource && !strings.HasPrefix(v.Text, "_:") {
		return int(v.Kind) + 1
	}
	return int(v.Kind)
}

// Compare compares two values as the operators of SPARQL 1.1, section 17.3, do. If
// ordered is false, the values are equal or different and neither is less. If known is
// false, it is undecidable whether they are equal.
func (v Value) Compare(w Value) (c int, ordered, known bool) {
	switch {
	case v.Kind == KindOther || w.Kind == KindOther:
		// A resource is not a literal; the values of literals of an unknown
		// datatype are unknown.
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

// CompareTerms compares the values of two terms. Identical terms are equal, whatever
// their datatype, except NaN.
func CompareTerms(a, b kg.Term) (c int, ordered, known bool) {
	v := Of(a)
	c, ordered, known = v.Compare(Of(b))
	if a == b && !known {
		return 0, false, true
	}
	return c, ordered, known
}

// WellFormed reports whether a literal's lexical form is valid for its datatype. Forms
// of an unsupported datatype are accepted.
func WellFormed(t kg.Term) bool {
	switch datatype := t.Datatype(); {
	case datatype == kg.XSDBoolean, kg.IsNumeric(datatype):
		return Of(t).Kind != KindOther
	case kg.IsTemporal(datatype):
		return Of(t).Kind != KindOther || kg.HasLongYear(t.Value()) && t.FitsDatatype()
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

// OrderTerms is a total order of terms: by value, and by text if the values are equal.
func OrderTerms(a, b kg.Term) int {
	return cmp.Or(Of(a).Order(Of(b)), a.Compare(b))
}
