package graph

import (
	"cmp"
	"slices"
	"strconv"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// ordering is a list of sort keys. An empty one is the order of the index.
type ordering[T any] []orderKey[T]

type orderKey[T any] struct {
	descending bool
	nullFirst  bool
	extract    func(T) (v value, there bool, err error)
}

// rank is the position of an element in an ordering.
type rank []rankKey

type rankKey struct {
	value
	null bool
}

func (o ordering[T]) rankOf(t T) (rank, error) {
	r := make(rank, len(o))
	for i, k := range o {
		v, there, err := k.extract(t)
		if err != nil {
			return nil, err
		}
		r[i] = rankKey{v, !there}
	}
	return r, nil
}

func (o ordering[T]) compare(a, b rank) int {
	for i, k := range o {
		switch {
		case a[i].null && b[i].null:
		case a[i].null || b[i].null:
			if a[i].null == k.nullFirst {
				return -1
			}
			return 1
		default:
			c := a[i].Order(b[i].value)
			if k.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
	}
	return 0
}

// ranked is an element's key with its rank.
type ranked[K any] struct {
	rank rank
	key  K
}

// topN collects the first n elements of an ordering, after `after`, in bounded
// memory.
type topN[T, K any] struct {
	order   ordering[T]
	compare func(a, b K) int // index order, for equal ranks
	n       int
	after   *ranked[K]
	kept    []ranked[K]
}

func (c *topN[T, K]) compareRanked(a, b ranked[K]) int {
	return cmp.Or(c.order.compare(a.rank, b.rank), c.compare(a.key, b.key))
}

func (c *topN[T, K]) add(t T, key K) error {
	r, err := c.order.rankOf(t)
	if err != nil {
		return err
	}
	e := ranked[K]{r, key}
	if c.after != nil && c.compareRanked(e, *c.after) <= 0 {
		return nil
	}
	if c.kept = append(c.kept, e); len(c.kept) >= 2*c.n+1024 {
		c.trimToSize()
	}
	return nil
}

func (c *topN[T, K]) trimToSize() {
	slices.SortFunc(c.kept, c.compareRanked)
	c.kept = c.kept[:min(len(c.kept), c.n)]
}

// firstKeys returns the first n keys in order.
func (c *topN[T, K]) firstKeys() []K {
	c.trimToSize()
	out := make([]K, len(c.kept))
	for i, e := range c.kept {
		out[i] = e.key
	}
	return out
}

// orderStatements compiles the argument orderBy of a list of statements.
func orderStatements(list []StatementOrder) (o ordering[*testedStatement]) {
	for _, by := range list {
		k := orderKey[*testedStatement]{descending: by.Direction == SortDirectionDesc, nullFirst: by.Direction == SortDirectionAsc, extract: statementKey(by.By)}
		if by.Nulls != nil {
			k.nullFirst = *by.Nulls == NullsOrderFirst
		}
		o = append(o, k)
	}
	return o
}

func statementKey(by StatementOrderKey) func(*testedStatement) (value, bool, error) {
	term := func(part func(*testedStatement) (kg.Term, error)) func(*testedStatement) (value, bool, error) {
		return func(f *testedStatement) (value, bool, error) {
			t, err := part(f)
			return valueOf(t), t != kg.DefaultGraph, err
		}
	}
	switch by {
	case StatementOrderKeySubject:
		return term((*testedStatement).subjectTerm)
	case StatementOrderKeyPredicate:
		return term((*testedStatement).predicateTerm)
	case StatementOrderKeyObject:
		return term((*testedStatement).objectTerm)
	case StatementOrderKeyGraph:
		return term((*testedStatement).graphTerm)
	}
	return func(f *testedStatement) (v value, _ bool, err error) {
		s, err := f.loadStatement()
		switch by {
		case StatementOrderKeyCertainty:
			v.Number, _ = s.Certainty()
		case StatementOrderKeyRecordedAt:
			v.Kind, v.Moment = valuespace.KindMoment, valuespace.At(s.RecordedAt())
		case StatementOrderKeyRevision:
			v.Number = float64(s.Revision())
		}
		return v, true, err
	}
}

// orderEntities compiles the argument orderBy of a list of entities.
// Predicates that the keys need are added to wanted of the match.
func orderEntities(list []EntityOrder, m *entityMatch) (o ordering[*subject], err error) {
	for i, by := range list {
		k := orderKey[*subject]{descending: by.Direction == SortDirectionDesc, nullFirst: by.Nulls == NullsOrderFirst}
		switch {
		case by.By != nil && by.Property == nil && by.Path == nil:
			k.extract = entityKey(*by.By, m)
		case by.By == nil && (by.Property == nil) != (by.Path == nil):
			of, err := m.compileEnds(by.Property, by.Path)
			if err != nil {
				return nil, kg.AsError(err).At("path").At("[" + strconv.Itoa(i) + "]")
			}
			k.extract = endKey(of, k.descending)
		default:
			return nil, kg.Errorf(kg.CodeInvalid, "an order requires exactly one of by, property and path").At("[" + strconv.Itoa(i) + "]")
		}
		o = append(o, k)
	}
	return o, nil
}

// endKey is the smallest or greatest value of a property or of a path's ends.
func endKey(of pathEnds, greatest bool) func(*subject) (value, bool, error) {
	return func(s *subject) (found value, there bool, err error) {
		for id, err := range of(s) {
			if err != nil {
				return found, false, err
			}
			t, err := s.snapshot.Term(id)
			if err != nil {
				return found, false, err
			}
			v := valueOf(t)
			if c := v.Order(found); !there || greatest && c > 0 || !greatest && c < 0 {
				found, there = v, true
			}
		}
		return found, there, nil
	}
}

func entityKey(by EntityOrderKey, m *entityMatch) func(*subject) (value, bool, error) {
	switch by {
	case EntityOrderKeyDegree:
		return degreeKey(DirectionBoth)
	case EntityOrderKeyOutDegree:
		return degreeKey(DirectionOut)
	case EntityOrderKeyInDegree:
		return degreeKey(DirectionIn)
	case EntityOrderKeyLabel:
		wanted := make([]int, len(m.engine.labels))
		for i, l := range m.engine.labels {
			wanted[i] = m.wantPredicate(l)
		}
		return func(s *subject) (value, bool, error) { return labelKey(s, wanted) }
	}
	return func(s *subject) (value, bool, error) {
		t, err := s.entityTerm()
		return valueOf(t), true, err
	}
}

func degreeKey(d Direction) func(*subject) (value, bool, error) {
	return func(s *subject) (v value, _ bool, err error) {
		n, err := s.scan.countDegree(s.id, d)
		v.Number = float64(n)
		return v, true, err
	}
}

func labelKey(s *subject, wanted []int) (v value, there bool, err error) {
	var found []candidate
	for rank, i := range wanted {
		for _, row := range s.rows[i] {
			found = append(found, candidate{row, rank})
		}
	}
	t, err := bestLabel(s.snapshot, found, nil)
	return value{Kind: valuespace.KindText, Text: t.Value()}, !t.IsZero(), err
}
