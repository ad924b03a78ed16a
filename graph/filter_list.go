package graph

import (
	"math"
	"math/big"
	"time"
)

// operandSet is a list of operands to compare with for equality. What a comparison
// costs does not grow with the list: a query may bring hundreds of thousands of
// values and meet as many statements.
type operandSet struct {
	texts   map[string]bool
	moments map[instant]bool
	numbers map[float64]bool // those that a float64 holds
	exact   map[string]bool  // the others, as fractions
	yes, no bool
}

// instant is a moment in a form that can be looked up.
type instant struct {
	seconds     int64
	nanoseconds int
}

func instantOf(t time.Time) instant { return instant{t.Unix(), t.Nanosecond()} }

func newOperandSet(list []operand) *operandSet {
	s := &operandSet{texts: map[string]bool{}, moments: map[instant]bool{}, numbers: map[float64]bool{}, exact: map[string]bool{}}
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
			s.moments[instantOf(o.moment)] = true
		}
	case booleanValue:
		s.yes, s.no = s.yes || o.boolean, s.no || !o.boolean
	case numberValue:
		if o.exact == nil {
			s.numbers[o.number] = true
		} else {
			s.exact[o.exact.RatString()] = true
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
		return s.moments[instantOf(v.moment)]
	case booleanValue:
		return v.boolean && s.yes || !v.boolean && s.no
	case numberValue:
		return s.containsNumber(v)
	}
	return false
}

func (s *operandSet) containsNumber(v value) bool {
	if v.exact != nil {
		f, held := v.exact.Float64()
		return held && s.numbers[f] || s.exact[v.exact.RatString()]
	}
	if s.numbers[v.number] {
		return true
	}
	if len(s.exact) == 0 || math.IsInf(v.number, 0) {
		return false
	}
	return s.exact[new(big.Rat).SetFloat64(v.number).RatString()]
}
