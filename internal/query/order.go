package query

import (
	"cmp"
	"slices"
	"strconv"

	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/internal/query/valuespace"
	"koine/kg"
	"koine/kg/base"
)

// SortDirection is the direction of a sort key.
type SortDirection string

// The sort directions.
const (
	Ascending  SortDirection = "ASC"
	Descending SortDirection = "DESC"
)

// NullsOrder is the place of elements without a value.
type NullsOrder string

// The places.
const (
	NullsFirst NullsOrder = "FIRST"
	NullsLast  NullsOrder = "LAST"
)

// EntityOrder is a sort key of entities: one of By, Property and Path.
type EntityOrder struct {
	By        *EntityAttribute
	Property  *base.Term
	Path      *string
	Direction SortDirection
	Nulls     NullsOrder
}

// EntityAttribute is an attribute by which entities are ordered.
type EntityAttribute string

// The attributes of entities.
const (
	EntityIRI       EntityAttribute = "IRI"
	EntityLabel     EntityAttribute = "LABEL"
	EntityDegree    EntityAttribute = "DEGREE"
	EntityOutDegree EntityAttribute = "OUT_DEGREE"
	EntityInDegree  EntityAttribute = "IN_DEGREE"
)

// StatementOrder is a sort key of statements. By default, those of the default
// graph, which has no name, count as the smallest.
type StatementOrder struct {
	By        StatementAttribute
	Direction SortDirection
	Nulls     *NullsOrder
}

// StatementAttribute is an attribute by which statements are ordered or
// grouped.
type StatementAttribute string

// The attributes of statements. BySource groups assertions.
const (
	BySubject    StatementAttribute = "SUBJECT"
	ByPredicate  StatementAttribute = "PREDICATE"
	ByObject     StatementAttribute = "OBJECT"
	ByGraph      StatementAttribute = "GRAPH"
	ByCertainty  StatementAttribute = "CERTAINTY"
	ByRecordedAt StatementAttribute = "RECORDED_AT"
	ByRevision   StatementAttribute = "REVISION"
	BySource     StatementAttribute = "SOURCE"
	ByDay        StatementAttribute = "DAY"
)

// MatchOrder is a sort key of the rows of a pattern.
type MatchOrder struct {
	Var       string
	Direction SortDirection
	Nulls     NullsOrder
}

// GroupOrder is a sort key of groups: a key or value, or "count".
type GroupOrder struct {
	As        string
	Direction SortDirection
	Nulls     NullsOrder
}

// ordering is a list of sort keys. An empty one is the order of the index.
type ordering[T any] []orderKey[T]

type orderKey[T any] struct {
	sortKey
	property *kg.Term // set: the key is the smallest or greatest value of this property
	extract  func(T) (v valuespace.Value, there bool, err error)
}

type sortKey struct{ descending, nullFirst bool }

// rank is the position of an element in an ordering.
type rank []rankKey

type rankKey struct {
	valuespace.Value
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

func (k sortKey) compare(a, b rankKey) int {
	switch {
	case a.null && b.null:
		return 0
	case a.null || b.null:
		if a.null == k.nullFirst {
			return -1
		}
		return 1
	case k.descending:
		return b.Order(a.Value)
	}
	return a.Order(b.Value)
}

func (o ordering[T]) compare(a, b rank) int {
	for i, k := range o {
		if c := k.compare(a[i], b[i]); c != 0 {
			return c
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
	// backward collects from the end of the ordering: the first is the last
	// element, or the last one before `after`.
	backward bool
}

func (c *topN[T, K]) compareRanked(a, b ranked[K]) int {
	if c.backward {
		a, b = b, a
	}
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

// The orders of entities and of statements.
type (
	EntityOrdering    = ordering[*subject]
	StatementOrdering = ordering[*testedStatement]
)

// OrderStatements compiles the sort keys of a list of statements.
func OrderStatements(list []StatementOrder) (o StatementOrdering) {
	for _, by := range list {
		k := sortKey{descending: by.Direction == Descending, nullFirst: by.Direction == Ascending}
		if by.Nulls != nil {
			k.nullFirst = *by.Nulls == NullsFirst
		}
		o = append(o, orderKey[*testedStatement]{sortKey: k, extract: statementKey(by.By)})
	}
	return o
}

func statementKey(by StatementAttribute) func(*testedStatement) (valuespace.Value, bool, error) {
	if part, ok := partOf[by]; ok {
		return func(f *testedStatement) (valuespace.Value, bool, error) {
			t, err := f.term(part)
			return valuespace.Of(t), t != kg.DefaultGraph, err
		}
	}
	return func(f *testedStatement) (v valuespace.Value, _ bool, err error) {
		s, err := f.loadStatement()
		switch by {
		case ByCertainty:
			v.Number, _ = s.Certainty()
		case ByRecordedAt:
			v.Kind, v.Moment = valuespace.KindMoment, valuespace.At(s.RecordedAt())
		case ByRevision:
			v.Number = float64(s.Revision())
		}
		return v, true, err
	}
}

// OrderBy compiles the sort keys of the entities. Predicates that they need
// are added to wanted.
func (m *EntityMatch) OrderBy(list []EntityOrder) (o EntityOrdering, err error) {
	for i, by := range list {
		k := orderKey[*subject]{sortKey: sortKey{by.Direction == Descending, by.Nulls == NullsFirst}}
		switch {
		case by.By != nil && by.Property == nil && by.Path == nil:
			k.extract = entityKey(*by.By, m)
		case by.By == nil && (by.Property == nil) != (by.Path == nil):
			of, err := m.compileEnds(by.Property, by.Path)
			if err != nil {
				return nil, kg.AsError(err).At("path").At("[" + strconv.Itoa(i) + "]")
			}
			k.extract, k.property = endKey(of, k.descending), by.Property
		default:
			return nil, kg.Errorf(kg.CodeInvalid, "an order requires exactly one of by, property and path").At("[" + strconv.Itoa(i) + "]")
		}
		o = append(o, k)
	}
	return o, nil
}

// endKey is the smallest or greatest value of a property or of a path's ends.
func endKey(of pathEnds, greatest bool) func(*subject) (valuespace.Value, bool, error) {
	return func(s *subject) (found valuespace.Value, there bool, err error) {
		for id, err := range of(s) {
			if err != nil {
				return found, false, err
			}
			t, err := s.snapshot.Term(id)
			if err != nil {
				return found, false, err
			}
			v := valuespace.Of(t)
			if c := v.Order(found); !there || greatest && c > 0 || !greatest && c < 0 {
				found, there = v, true
			}
		}
		return found, there, nil
	}
}

func entityKey(by EntityAttribute, m *EntityMatch) func(*subject) (valuespace.Value, bool, error) {
	switch by {
	case EntityDegree:
		return degreeKey(path.Both)
	case EntityOutDegree:
		return degreeKey(path.Out)
	case EntityInDegree:
		return degreeKey(path.In)
	case EntityLabel:
		wanted := make([]int, len(m.Labels))
		for i, l := range m.Labels {
			wanted[i] = m.wantPredicate(l)
		}
		return func(s *subject) (valuespace.Value, bool, error) { return labelKey(s, wanted) }
	}
	return func(s *subject) (valuespace.Value, bool, error) {
		t, err := s.entityTerm()
		return valuespace.Of(t), true, err
	}
}

func degreeKey(d path.Direction) func(*subject) (valuespace.Value, bool, error) {
	return func(s *subject) (v valuespace.Value, _ bool, err error) {
		n, err := s.scan.Count(s.id, d)
		v.Number = float64(n)
		return v, true, err
	}
}

func labelKey(s *subject, wanted []int) (v valuespace.Value, there bool, err error) {
	var found []Candidate
	for rank, i := range wanted {
		for _, row := range s.rows[i] {
			found = append(found, Candidate{row, rank})
		}
	}
	t, err := BestLabel(s.snapshot, found, nil)
	return valuespace.Value{Kind: valuespace.KindText, Text: t.Value()}, !t.IsZero(), err
}

// SortKey returns the key of a pattern's rows.
func (o MatchOrder) SortKey() pattern.Order {
	k := sortKey{o.Direction == Descending, o.Nulls == NullsFirst}
	return pattern.Order{Var: o.Var, ByValue: true, Descending: k.descending, Compare: func(a, b kg.Term) int {
		return k.compare(rankKey{valuespace.Of(a), a.IsZero()}, rankKey{valuespace.Of(b), b.IsZero()})
	}}
}
