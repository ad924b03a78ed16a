package query

import (
	"slices"
	"strconv"
	"strings"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// AggregateFunction is an aggregate function.
type AggregateFunction string

// The aggregate functions. CountDistinct counts terms, so 1 and 1.0 are two.
// Sum and Avg ignore values that are not numbers.
const (
	Count         AggregateFunction = "COUNT"
	CountDistinct AggregateFunction = "COUNT_DISTINCT"
	Min           AggregateFunction = "MIN"
	Max           AggregateFunction = "MAX"
	Sum           AggregateFunction = "SUM"
	Avg           AggregateFunction = "AVG"
)

// GroupCondition is a condition on a key or value of a group, or on "count".
type GroupCondition struct {
	As     string
	Exists *bool
	Comparisons
}

// GroupOptions are the conditions, the order and the number of the groups to
// return.
type GroupOptions struct {
	Having []GroupCondition
	Order  []GroupOrder
	First  int
	Limits GroupLimits
}

// GroupLimits bound the memory of a grouping.
type GroupLimits struct {
	Groups int // keys of all groups, before Having and First; each computed value counts as one more
	Values int // distinct keys and values
}

// Bounds of the keys of a grouping and of the values computed for each group.
const (
	MaxGroupKeys = 4
	MaxComputed  = 16
)

// GroupShape is the part of a Grouping that does not depend on the grouped
// elements.
type GroupShape struct {
	Names []string // of the keys, then of the computed values
	Keys  int      // the number of keys

	limits GroupLimits
	having []func(*Group) bool
	order  ordering[*Group]
	first  int

	sizesOnly       bool  // all computed values are numbers of elements
	havingReadsKeys bool  // a condition compares a key
	havingNeedsKey  bool  // no group without the first key meets the conditions
	orderIndexes    []int // of the sort keys
}

// sizeOfGroup is the index of "count" among a group's terms.
const sizeOfGroup = -1

// complete checks the names and compiles the options.
func (s *GroupShape) complete(o GroupOptions) (err error) {
	s.limits, s.first = o.Limits, o.First
	switch {
	case s.Keys > MaxGroupKeys:
		return groupLimit("groupKeys", "", "groups have at most %d keys", MaxGroupKeys)
	case len(s.Names)-s.Keys > MaxComputed:
		return groupLimit("groupValues", "", "groups have at most %d computed values", MaxComputed)
	}
	for i, name := range s.Names {
		if name == "" || name == "count" || slices.Contains(s.Names[:i], name) {
			e := kg.Errorf(kg.CodeInvalid, "the name %q cannot be used: names (as) must be unique, and count is reserved", name)
			return e.At("as")
		}
	}
	if s.having, err = s.compileHaving(o.Having); err != nil {
		return kg.AsError(err).At("having")
	}
	if s.order, err = s.compileOrder(o.Order); err != nil {
		return kg.AsError(err).At("orderBy")
	}
	return nil
}

func groupLimit(limit, hint, format string, most int) error {
	e := kg.Errorf(kg.CodeLimitExceeded, format, most)
	e.Limit, e.Hint = limit, hint
	return e
}

// Index returns the index of a key or value by its name.
func (s *GroupShape) Index(name string) (int, error) {
	if name == "count" {
		return sizeOfGroup, nil
	}
	if i := slices.Index(s.Names, name); i >= 0 {
		return i, nil
	}
	e := kg.Errorf(kg.CodeInvalid, "no key or value is named %q", name)
	var names []string
	for _, n := range s.Names {
		names = append(names, strconv.Quote(n))
	}
	e.Hint = "The names are: " + strings.Join(append(names, `"count"`), ", ") + "."
	return 0, e.At("as")
}

func (s *GroupShape) compileHaving(list []GroupCondition) (out []func(*Group) bool, err error) {
	for i := range list {
		c := &list[i]
		of, err := s.Index(c.As)
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		fits, err := matchComparisons(&c.Comparisons)
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		isKey := of >= 0 && of < s.Keys
		s.havingReadsKeys = s.havingReadsKeys || isKey && fits != nil
		s.havingNeedsKey = s.havingNeedsKey || of == 0 && isKey && (fits != nil || c.Exists != nil && *c.Exists)
		out = append(out, func(g *Group) bool {
			t := g.Term(of)
			if c.Exists != nil && *c.Exists == t.IsZero() {
				return false
			}
			return fits == nil || !t.IsZero() && fits(t)
		})
	}
	return out, nil
}

func (s *GroupShape) meetsHaving(g *Group) bool {
	for _, holds := range s.having {
		if !holds(g) {
			return false
		}
	}
	return true
}

func (s *GroupShape) compileOrder(list []GroupOrder) (o ordering[*Group], err error) {
	for i, by := range list {
		of, err := s.Index(by.As)
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		s.orderIndexes = append(s.orderIndexes, of)
		o = append(o, orderKey[*Group]{
			sortKey: sortKey{by.Direction == Descending, by.Nulls == NullsFirst},
			extract: func(g *Group) (valuespace.Value, bool, error) {
				t := g.Term(of)
				if t.IsZero() {
					return valuespace.Value{}, false, nil
				}
				return valuespace.Of(t), true, nil
			},
		})
	}
	return o, nil
}
