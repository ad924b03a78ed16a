package graph

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"koine/kg"
)

// operand is what a filter compares values with, as it came in JSON: a value without
// a language and a datatype. A string stands for the text in whatever language, for
// the moment that it may be read as, and for a literal of another datatype that is
// written so.
type operand struct {
	value
	hasMoment bool // a string that reads as one
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
		for _, datatype := range [...]string{kg.XSDDateTime, kg.XSDDate, xsdTime} {
			if o.moment, o.hasMoment = parseMoment(o.text, datatype); o.hasMoment {
				break
			}
		}
	case c == 't' || c == 'f':
		o.kind, o.boolean, o.text = booleanValue, c == 't', string(raw)
	case c == '-' || isDigit(c):
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "the number is out of range")
		}
		o.kind, o.number, o.text = numberValue, f, string(raw)
		o.exact = !strings.ContainsAny(o.text, "eE")
	default:
		return o, kg.Errorf(kg.CodeInvalid, "a value to compare with is a string, a number or a boolean")
	}
	return o, nil
}

// compare compares a value with the operand: ok is false when there is nothing to
// compare. A literal of an unknown datatype equals the string that it is written as,
// and is neither less nor greater.
func (o *operand) compare(v value) (c int, ok, ordered bool) {
	if o.kind == textValue {
		switch {
		case v.kind == textValue:
			return strings.Compare(v.text, o.text), true, true
		case v.kind == momentValue && o.hasMoment:
			c, ordered, _ = v.moment.compare(o.moment)
			return c, ordered, ordered
		case v.kind == otherValue:
			return strings.Compare(v.text, o.text), true, false
		}
		return 0, false, false
	}
	if v.kind != o.kind {
		return 0, false, false
	}
	c, ordered, _ = v.compare(o.value)
	return c, ordered, ordered
}

// operandSet is a list of operands to compare with for equality. What a comparison
// costs does not grow with the list: a query may bring hundreds of thousands of
// values and meet as many statements.
type operandSet struct {
	texts   map[string]bool
	moments map[instant]bool
	numbers map[float64]bool // all, as doubles
	doubles map[float64]bool // those that are doubles
	exact   map[string]bool  // the others, as decimals
	yes, no bool
}

func newOperandSet(list []operand) *operandSet {
	s := &operandSet{texts: map[string]bool{}, moments: map[instant]bool{}, numbers: map[float64]bool{}, doubles: map[float64]bool{}, exact: map[string]bool{}}
	for i := range list {
		s.add(&list[i])
	}
	return s
}

func (s *operandSet) add(o *operand) {
	switch o.kind {
	case textValue:
		s.texts[o.text] = true
		if o.hasMoment {
			s.moments[o.moment.instant()] = true
		}
	case booleanValue:
		s.yes, s.no = s.yes || o.boolean, s.no || !o.boolean
	case numberValue:
		s.numbers[o.number] = true
		if o.exact {
			s.exact[canonicalDecimal(o.text).key()] = true
		} else {
			s.doubles[o.number] = true
		}
	}
}

// contains reports whether the value equals an operand of the set, as
// operand.compare has it.
func (s *operandSet) contains(v value) bool {
	switch v.kind {
	case textValue, otherValue:
		return s.texts[v.text]
	case momentValue:
		return s.moments[v.moment.instant()]
	case booleanValue:
		return v.boolean && s.yes || !v.boolean && s.no
	case numberValue:
		if math.IsNaN(v.number) || !s.numbers[v.number] {
			return false
		}
		return !v.exact || s.doubles[v.number] || s.exact[canonicalDecimal(v.text).key()]
	}
	return false
}
