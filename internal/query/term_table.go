package query

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// termNumber is the number of a term in members.
type termNumber int32

// noTerm represents the absence of a value.
const noTerm termNumber = -1

// termTable numbers the terms that a grouping meets. Terms are distinguished as
// by GROUP BY and DISTINCT of SPARQL 1.1: 1 and 1.0 are different, and so are
// "chat"@en and "chat"@fr. Each id is decoded once, when its term is needed.
type termTable struct {
	snapshot *kg.Snapshot
	max      int
	byID     map[kg.ID]termNumber
	byTerm   map[kg.Term]termNumber
	values   []termValue
}

// termValue is a member's term with its value.
type termValue struct {
	term  kg.Term
	value valuespace.Value
	id    kg.ID // zero: of a term without one, or loaded
}

// compareTo is a total order of members.
func (m *termValue) compareTo(n *termValue) int {
	return cmp.Or(m.value.Order(n.value), m.term.Compare(n.term))
}

func newTermTable(s *kg.Snapshot, max int) *termTable {
	return &termTable{snapshot: s, max: max, byID: map[kg.ID]termNumber{}, byTerm: map[kg.Term]termNumber{}}
}

// indexOfID returns the member of an id. Different ids of a snapshot are different
// terms.
func (m *termTable) indexOfID(id kg.ID) (termNumber, error) {
	if n, ok := m.byID[id]; ok {
		return n, nil
	}
	n, err := m.appendValue(termValue{id: id})
	if err == nil {
		m.byID[id] = n
	}
	return n, err
}

// loadTerm reads the term of a member.
func (m *termTable) loadTerm(n termNumber) error {
	v := &m.values[n]
	if v.id.IsZero() {
		return nil
	}
	t, err := m.snapshot.Term(v.id)
	if err != nil {
		return err
	}
	*v = termValue{term: t, value: valuespace.Of(t)}
	return nil
}

func (m *termTable) appendValue(v termValue) (termNumber, error) {
	if len(m.values) >= m.max {
		return noTerm, m.tooMany()
	}
	m.values = append(m.values, v)
	return termNumber(len(m.values) - 1), nil
}

// indexOfTerm returns the member of a term.
func (m *termTable) indexOfTerm(t kg.Term) (termNumber, error) {
	if n, ok := m.byTerm[t]; ok {
		return n, nil
	}
	n, err := m.appendValue(termValue{term: t, value: valuespace.Of(t)})
	if err == nil {
		m.byTerm[t] = n
	}
	return n, err
}

func (m *termTable) tooMany() error {
	return groupLimit("groupedValues", "Group by a key with fewer values, or add a filter.", "the groups have more than %d distinct values", m.max)
}

// sum adds numbers: integers and decimals exactly, floats and doubles with
// their precision.
type sum struct {
	n       uint64
	whole   int64    // exact part that fits into an int64
	exact   *big.Rat // rest of the integers and decimals; nil for none
	float   float64
	lost    float64 // compensation of float (Kahan summation)
	inexact bool    // a summand was a float or a double
}

// add adds a number and ignores any other value.
func (s *sum) add(m *termValue) {
	if m.value.Kind != valuespace.KindNumber {
		return
	}
	s.n++
	switch m.term.Datatype() {
	case kg.XSDDouble, kg.XSD + "float":
		s.inexact = true
		y := m.value.Number - s.lost
		t := s.float + y
		s.lost = (t - s.float) - y
		if s.float = t; math.IsInf(t, 0) || math.IsNaN(t) {
			s.lost = 0 // it is not a number
		}
		return
	}
	if whole, err := strconv.ParseInt(m.term.Value(), 10, 64); err == nil {
		if t := s.whole + whole; (t > s.whole) == (whole > 0) {
			s.whole = t
			return
		}
	}
	if s.exact == nil {
		s.exact = new(big.Rat)
	}
	s.exact.Add(s.exact, m.value.Fraction())
}

func (s *sum) exactSum() *big.Rat {
	r := new(big.Rat).SetInt64(s.whole)
	if s.exact != nil {
		r.Add(r, s.exact)
	}
	return r
}

// meanDigits is the number of decimals of a mean without a finite expansion.
const meanDigits = 18

// sumTerm returns the sum as a literal, 0 without summands.
func (s *sum) sumTerm() kg.Term {
	if s.inexact {
		f, _ := s.exactSum().Float64()
		return doubleTerm(f + s.float)
	}
	return decimalTerm(s.exactSum())
}

// meanTerm returns the arithmetic mean, the zero Term without summands.
func (s *sum) meanTerm() kg.Term {
	if s.n == 0 {
		return kg.Term{}
	}
	if s.inexact {
		f, _ := s.exactSum().Float64()
		return doubleTerm((f + s.float) / float64(s.n))
	}
	return decimalTerm(new(big.Rat).Quo(s.exactSum(), new(big.Rat).SetInt(new(big.Int).SetUint64(s.n))))
}

func doubleTerm(f float64) kg.Term {
	if math.IsInf(f, 0) { // Go writes +Inf
		return kg.Typed(strings.ToUpper(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+")), kg.XSDDouble)
	}
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
