package graph

import (
	"math/big"
	"strconv"

	"koine/kg"
)

// member is a value among members; terms that mean the same are one.
type member int32

// nobody stands for: no value.
const nobody member = -1

// members numbers the values that a grouping meets, by what they mean: 1 and
// 1.0 are one member, "chat"@en and "chat"@fr too. Each id is decoded once.
type members struct {
	snapshot  *kg.Snapshot
	max       int
	byID      map[kg.ID]member
	byMeaning map[string]member
	values    []memberValue
}

// memberValue is a member with the term that stands for it: of all that were
// met, the first in the order of Term.Compare.
type memberValue struct {
	term  kg.Term
	value value
}

func newMembers(s *kg.Snapshot, max int) *members {
	return &members{snapshot: s, max: max, byID: map[kg.ID]member{}, byMeaning: map[string]member{}}
}

// of is the member that an id stands for.
func (m *members) of(id kg.ID) (member, error) {
	if n, ok := m.byID[id]; ok {
		return n, nil
	}
	t, err := m.snapshot.Term(id)
	if err != nil {
		return nobody, err
	}
	n, err := m.term(t)
	m.byID[id] = n
	return n, err
}

// term is the member that a term stands for.
func (m *members) term(t kg.Term) (member, error) {
	v := valueOf(t)
	meaning := v.meaning()
	if n, ok := m.byMeaning[meaning]; ok {
		if t.Compare(m.values[n].term) < 0 {
			m.values[n] = memberValue{t, v}
		}
		return n, nil
	}
	if len(m.values) >= m.max {
		return nobody, m.tooMany()
	}
	n := member(len(m.values))
	m.values = append(m.values, memberValue{t, v})
	m.byMeaning[meaning] = n
	return n, nil
}

func (m *members) tooMany() error {
	return limitError("groupedValues", "the groups are made of more than %d different values", m.max).
		hint("Group by something with fewer values, or narrow what is grouped.")
}

// meaning is a text that is the same for values that compare as equal, and
// only for those.
func (v value) meaning() string {
	kind := string(rune('0' + v.kind))
	switch v.kind {
	case numberValue:
		return kind + v.numberMeaning()
	case momentValue:
		return kind + strconv.FormatInt(v.moment.Unix(), 10) + "." + strconv.Itoa(v.moment.Nanosecond())
	case booleanValue:
		return kind + strconv.FormatBool(v.boolean)
	}
	return kind + v.text
}

func (v value) numberMeaning() string {
	if v.exact != nil {
		if f, exact := v.exact.Float64(); !exact {
			return v.exact.RatString()
		} else {
			return floatMeaning(f)
		}
	}
	return floatMeaning(v.number)
}

func floatMeaning(f float64) string {
	if f == 0 {
		f = 0 // -0 is 0
	}
	return strconv.FormatFloat(f, 'x', -1, 64)
}

// sum adds numbers up: integers and decimals exactly, floats and doubles with
// the precision that they have.
type sum struct {
	n       uint64
	whole   int64    // what fits
	exact   *big.Rat // the rest of integers and decimals; nil for none
	float   float64
	lost    float64 // what float is too great by (Kahan)
	inexact bool    // some number was a float or a double
}

// add adds what is a number, and passes over the rest.
func (s *sum) add(m *memberValue) {
	if m.value.kind != numberValue {
		return
	}
	s.n++
	switch m.term.Datatype() {
	case kg.XSDDouble, kg.XSD + "float":
		s.inexact = true
		y := m.value.number - s.lost
		t := s.float + y
		s.lost = (t - s.float) - y
		s.float = t
		return
	}
	if whole, err := strconv.ParseInt(m.term.Value(), 10, 64); err == nil {
		if t := s.whole + whole; (t > s.whole) == (whole > 0) {
			s.whole = t
			return
		}
	}
	r := m.value.exact
	if r == nil {
		var ok bool
		if r, ok = new(big.Rat).SetString(m.term.Value()); !ok {
			r = m.value.fraction()
		}
	}
	if s.exact == nil {
		s.exact = new(big.Rat)
	}
	s.exact.Add(s.exact, r)
}

func (s *sum) total() *big.Rat {
	r := new(big.Rat).SetInt64(s.whole)
	if s.exact != nil {
		r.Add(r, s.exact)
	}
	return r
}

// meanDigits are those behind the point of a mean that does not end before.
const meanDigits = 18

// result is the sum as a literal, 0 when there was no number.
func (s *sum) result() kg.Term {
	if s.inexact {
		f, _ := s.total().Float64()
		return doubleTerm(f + s.float)
	}
	return decimalTerm(s.total())
}

// mean is the sum divided by how many numbers there were; the zero Term when
// there was none.
func (s *sum) mean() kg.Term {
	if s.n == 0 {
		return kg.Term{}
	}
	if s.inexact {
		f, _ := s.total().Float64()
		return doubleTerm((f + s.float) / float64(s.n))
	}
	return decimalTerm(new(big.Rat).Quo(s.total(), new(big.Rat).SetInt(new(big.Int).SetUint64(s.n))))
}

func doubleTerm(f float64) kg.Term {
	return kg.Typed(strconv.FormatFloat(f, 'g', -1, 64), kg.XSDDouble)
}

func decimalTerm(r *big.Rat) kg.Term {
	if r.IsInt() {
		return kg.Typed(r.Num().String(), kg.XSDInteger)
	}
	digits, ends := r.FloatPrec()
	if !ends {
		digits = meanDigits
	}
	return kg.Typed(r.FloatString(digits), kg.XSDDecimal)
}
