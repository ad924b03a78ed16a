package graph

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// valueKind sorts the values of different kinds, which cannot be compared, in
// the order of the constants.
type valueKind uint8

const (
	numberValue valueKind = iota
	momentValue
	booleanValue
	textValue
	otherValue // a literal of a datatype without an order here, or without sense
	resourceValue
)

// value is what a term means, in a form that compares.
type value struct {
	kind    valueKind
	number  float64
	exact   *big.Rat // of a number that a float64 does not hold exactly
	moment  time.Time
	boolean bool
	text    string // also of the other kinds: how it is written
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
		v.kind = textValue
	case kg.XSDBoolean:
		switch t.Value() {
		case "true", "1":
			v.kind, v.boolean = booleanValue, true
		case "false", "0":
			v.kind = booleanValue
		}
	case kg.XSDDateTime, kg.XSDDate:
		if m, ok := t.DateTimeValue(); ok {
			v.kind, v.moment = momentValue, m
		}
	default:
		if f, ok := t.Number(); ok && !math.IsNaN(f) {
			v.kind, v.number, v.exact = numberValue, f, exactNumber(t.Value(), f)
		}
	}
	return v
}

// maxExactDigits bounds what is compared digit by digit; numbers that are
// longer compare as float64.
const maxExactDigits = 400

// exactNumber is the number as a fraction where f may have lost digits of it.
func exactNumber(text string, f float64) *big.Rat {
	if len(text) <= 15 || len(text) > maxExactDigits || math.IsInf(f, 0) || strings.ContainsAny(text, "eE") {
		return nil
	}
	if r, ok := new(big.Rat).SetString(text); ok {
		return r
	}
	return nil
}

func compareNumbers(a, b value) int {
	if a.exact == nil && b.exact == nil || math.IsInf(a.number, 0) || math.IsInf(b.number, 0) {
		return cmp.Compare(a.number, b.number)
	}
	return a.fraction().Cmp(b.fraction())
}

func (v value) fraction() *big.Rat {
	if v.exact != nil {
		return v.exact
	}
	return new(big.Rat).SetFloat64(v.number)
}

// compare is a total order of values: first by kind, then by meaning.
func (v value) compare(w value) int {
	if c := cmp.Compare(v.kind, w.kind); c != 0 {
		return c
	}
	switch v.kind {
	case numberValue:
		return compareNumbers(v, w)
	case momentValue:
		return v.moment.Compare(w.moment)
	case booleanValue:
		return compareBooleans(v.boolean, w.boolean)
	}
	return strings.Compare(v.text, w.text)
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

// operand is what a filter compares values with, as it came in JSON.
type operand struct {
	value
	// moment is set when a string reads as one.
	hasMoment bool
}

func parseOperand(raw json.RawMessage) (operand, error) {
	var o operand
	if len(raw) == 0 {
		return o, kg.Errorf(kg.CodeInvalid, "a value is missing")
	}
	switch c := raw[0]; {
	case c == '"':
		if err := json.Unmarshal(raw, &o.text); err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "the value is no JSON string")
		}
		o.kind = textValue
		o.moment, o.hasMoment = parseMoment(o.text)
	case c == 't' || c == 'f':
		o.kind, o.boolean, o.text = booleanValue, c == 't', string(raw)
	case c == '-' || c >= '0' && c <= '9':
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "the number is out of range")
		}
		o.kind, o.number, o.text = numberValue, f, string(raw)
		o.exact = exactNumber(o.text, f)
	default:
		return o, kg.Errorf(kg.CodeInvalid, "a value to compare with is a string, a number or a boolean")
	}
	return o, nil
}

// parseMoment reads a date or a date and time as a literal of those types
// would be read.
func parseMoment(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02") || text[4] != '-' {
		return time.Time{}, false
	}
	if m, ok := kg.Typed(text, kg.XSDDateTime).DateTimeValue(); ok {
		return m, true
	}
	return kg.Typed(text, kg.XSDDate).DateTimeValue()
}

// compare compares a value with the operand: ok is false when there is nothing
// to compare. A literal of an unknown datatype equals the string that it is
// written as, and is neither less nor greater.
func (o *operand) compare(v value) (c int, ok, ordered bool) {
	switch {
	case v.kind == o.kind && v.kind != otherValue:
		return v.compare(o.value), true, true
	case o.kind != textValue:
		return 0, false, false
	case v.kind == momentValue && o.hasMoment:
		return v.moment.Compare(o.moment), true, true
	case v.kind == otherValue:
		return strings.Compare(v.text, o.text), true, false
	}
	return 0, false, false
}
