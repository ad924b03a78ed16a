package query

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// operand is the value of a filter, as given in JSON without language and
// datatype. A string stands for the text in any language, for the moment that
// it denotes, and for a literal of any other datatype with that lexical form.
type operand struct {
	valuespace.Value
	hasMoment bool // the string denotes a moment
}

func parseOperand(raw json.RawMessage) (operand, error) {
	var o operand
	if len(raw) == 0 {
		return o, kg.Errorf(kg.CodeInvalid, "a value is missing")
	}
	switch c := raw[0]; {
	case c == '"':
		if err := json.Unmarshal(raw, &o.Text); err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "the value is not a JSON string")
		}
		o.Kind = valuespace.KindText
		for _, datatype := range [...]string{kg.XSDDateTime, kg.XSDDate, kg.XSD + "time"} {
			if o.Moment, o.hasMoment = valuespace.ParseMoment(o.Text, datatype); o.hasMoment {
				break
			}
		}
	case c == 't' || c == 'f':
		o.Kind, o.Boolean, o.Text = valuespace.KindBoolean, c == 't', string(raw)
	case c == '-' || c >= '0' && c <= '9':
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return o, kg.Errorf(kg.CodeInvalid, "the number is out of range")
		}
		o.Kind, o.Number, o.Text = valuespace.KindNumber, f, string(raw)
		o.Exact = !strings.ContainsAny(o.Text, "eE")
	default:
		return o, kg.Errorf(kg.CodeInvalid, "the value must be a string, a number or a boolean")
	}
	return o, nil
}

// compare compares a value with the operand. ok is false if they are not
// comparable. A literal of an unknown datatype equals its lexical form and is
// neither less nor greater.
func (o *operand) compare(v valuespace.Value) (c int, ok, ordered bool) {
	if o.Kind == valuespace.KindText {
		switch {
		case v.Kind == valuespace.KindText:
			return strings.Compare(v.Text, o.Text), true, true
		case v.Kind == valuespace.KindMoment && o.hasMoment:
			c, ordered, _ = v.Moment.Compare(o.Moment)
			return c, ordered, ordered
		case v.Kind == valuespace.KindOther:
			return strings.Compare(v.Text, o.Text), true, false
		}
		return 0, false, false
	}
	if v.Kind != o.Kind {
		return 0, false, false
	}
	c, ordered, _ = v.Compare(o.Value)
	return c, ordered, ordered
}

// isUndetermined reports whether equality of the value and the operand is
// undetermined, as for two moments of which one has a time zone.
func (o *operand) isUndetermined(v valuespace.Value) bool {
	if v.Kind != valuespace.KindMoment || !o.hasMoment {
		return false
	}
	_, _, known := v.Moment.Compare(o.Moment)
	return !known
}

// operandSet is a list of operands compared for equality. The cost of a
// comparison does not grow with the list: a query may bring hundreds of
// thousands of values and test as many statements.
type operandSet struct {
	texts   map[string]bool
	moments map[valuespace.Instant]bool
	numbers map[float64]bool // all numbers, as doubles
	doubles map[float64]bool // the doubles
	exact   map[string]bool  // the other numbers, as decimals
	yes, no bool
	kinds   []valuespace.Moment // one moment of each kind
}

func newOperandSet(list []operand) *operandSet {
	s := &operandSet{texts: map[string]bool{}, moments: map[valuespace.Instant]bool{}, numbers: map[float64]bool{}, doubles: map[float64]bool{}, exact: map[string]bool{}}
	for i := range list {
		s.add(&list[i])
	}
	return s
}

func (s *operandSet) add(o *operand) {
	switch o.Kind {
	case valuespace.KindText:
		s.texts[o.Text] = true
		if o.hasMoment {
			s.moments[o.Moment.Instant()] = true
			if !slices.ContainsFunc(s.kinds, func(m valuespace.Moment) bool { _, ordered, _ := m.Compare(o.Moment); return ordered }) {
				s.kinds = append(s.kinds, o.Moment)
			}
		}
	case valuespace.KindBoolean:
		s.yes, s.no = s.yes || o.Boolean, s.no || !o.Boolean
	case valuespace.KindNumber:
		s.numbers[o.Number] = true
		if o.Exact {
			s.exact[kg.DecimalKey(o.Text)] = true
		} else {
			s.doubles[o.Number] = true
		}
	}
}

// isUndetermined reports whether equality of the value and an operand of the set is
// undetermined.
func (s *operandSet) isUndetermined(v valuespace.Value) bool {
	return v.Kind == valuespace.KindMoment && slices.ContainsFunc(s.kinds, func(m valuespace.Moment) bool { _, _, known := v.Moment.Compare(m); return !known })
}

// contains reports whether the value equals an operand of the set according to
// operand.compare.
func (s *operandSet) contains(v valuespace.Value) bool {
	switch v.Kind {
	case valuespace.KindText, valuespace.KindOther:
		return s.texts[v.Text]
	case valuespace.KindMoment:
		return s.moments[v.Moment.Instant()]
	case valuespace.KindBoolean:
		return v.Boolean && s.yes || !v.Boolean && s.no
	case valuespace.KindNumber:
		if math.IsNaN(v.Number) || !s.numbers[v.Number] {
			return false
		}
		return !v.Exact || s.doubles[v.Number] || s.exact[kg.DecimalKey(v.Text)]
	}
	return false
}
